"""Check an archive of evidence offline: every statement that follows from others is computed again.

No source of the archive is executed, and no path in it is followed. What an archive cannot show is said.
"""

from pathlib import Path

from kernel_scientist.evidence import conditions, contents, figures, origins, unchecked
from kernel_scientist.evidence.archive import Archive
from kernel_scientist.evidence.findings import Findings
from kernel_scientist.records.evidence import VerificationResult


def verify(path: str) -> VerificationResult:
    """Return what the verification of an archive found. Raises SetupError for a file that is none."""
    bundle, findings = Archive.read(Path(path)), Findings()
    found = contents.read(bundle, findings)
    for part in (origins, figures, conditions):
        part.check(found, findings)
    unchecked.note(found, findings)
    return VerificationResult(
        archive=path,
        campaign=bundle.manifest.campaign,
        kernel=bundle.manifest.kernel,
        checked=findings.checked,
        differences=tuple(findings.differences),
        unchecked=tuple(findings.unchecked),
    )
