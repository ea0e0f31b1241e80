"""Check an archive of evidence offline: every statement that follows from others is computed again.

No source of the archive is executed, and no path in it is followed. What an archive cannot show is said.
"""

from pathlib import Path

from kernel_scientist.evidence import conditions, contents, figures, origins
from kernel_scientist.evidence.archive import Archive
from kernel_scientist.evidence.contents import Contents
from kernel_scientist.evidence.findings import Findings
from kernel_scientist.records.evidence import VerificationResult

NEVER = {
    "the verdict": "no kernel is executed here: `kernel-scientist evaluate` checks its source on the problem again",
    "the clock readings": "an archive cannot show which machine made them: `kernel-scientist validate` times it again",
    "the secret inputs": "seeds of checked and timed calls come from the operating system and are not kept",
    "machine, versions and load": "they are what the evaluator wrote down; they were only compared with each other",
}
"""What no archive can show."""


def verify(path: str) -> VerificationResult:
    """Return what the verification of an archive found. Raises SetupError for a file that is none."""
    bundle, findings = Archive.read(Path(path)), Findings()
    found = contents.read(bundle, findings)
    for part in (origins, figures, conditions):
        part.check(found, findings)
    for what, why in NEVER.items():
        findings.open(what, why)
    _rest(found, findings)
    return VerificationResult(
        archive=path,
        campaign=bundle.manifest.campaign,
        kernel=bundle.manifest.kernel,
        checked=findings.checked,
        differences=tuple(findings.differences),
        unchecked=tuple(findings.unchecked),
    )


def _rest(found: Contents, findings: Findings) -> None:
    evaluation = found.evaluation
    if evaluation is None:
        return
    if evaluation.compile:
        findings.open("the compile report", "nothing is compiled here")
    if evaluation.predictions:
        findings.open("the predicted times", "they follow from counts of executed code, which are not in the archive")
    if evaluation.counters:
        findings.open("the hardware counters", "only the GPU has them")
