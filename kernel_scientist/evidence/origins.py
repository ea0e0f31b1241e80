"""Whether sources and lineage are what the rest of an archive says."""

from itertools import pairwise

from kernel_scientist.evidence import archive
from kernel_scientist.evidence.archive import source_file
from kernel_scientist.evidence.contents import Contents
from kernel_scientist.evidence.findings import Findings
from kernel_scientist.records.evidence import Ancestor
from kernel_scientist.records.kernel import REFERENCE, digest, edits


def check(contents: Contents, findings: Findings) -> None:
    """Compare sources, digests, differences and verdicts of the lineage, and the sources that were timed."""
    _timed_sources(contents, findings)
    if contents.lineage is None or not contents.lineage.kernels:
        if contents.lineage is not None:
            findings.wrong(archive.LINEAGE, "no kernel", contents.manifest.kernel)
        return
    kernels = contents.lineage.kernels
    findings.same(f"{archive.MANIFEST}: kernel", contents.manifest.kernel, kernels[0].name)
    if contents.evaluation is not None:
        findings.same(f"{archive.LINEAGE}: verdict", kernels[0].verdict, contents.evaluation.verdict)
    for kernel in kernels:
        _source(kernel, contents, findings)
    for kernel, base in pairwise(kernels):
        _step(kernel, base, contents, findings)
    last = kernels[-1]  # a seed or a standing champion
    findings.same(f"{archive.LINEAGE}: {last.name}", (last.base, last.experiment, last.diff), (None, None, ""))


def _source(kernel: Ancestor, contents: Contents, findings: Findings) -> None:
    what, source = f"{archive.LINEAGE}: {kernel.name}", contents.sources.get(source_file(kernel.name))
    if source is None:
        findings.wrong(source_file(kernel.name), "missing", f"the source of {kernel.name}")
        return
    findings.same(f"{what}: digest", kernel.digest, digest(source))
    if contents.environment is not None:
        findings.same(f"{what}: language", kernel.language, contents.environment.params.get("language"))


def _step(kernel: Ancestor, base: Ancestor, contents: Contents, findings: Findings) -> None:
    what = f"{archive.LINEAGE}: {kernel.name}"
    findings.same(f"{what}: base", kernel.base, base.name)
    findings.same(f"{what}: generation is not before its base's", kernel.generation >= base.generation, True)
    after, before = (contents.sources.get(source_file(one.name)) for one in (kernel, base))
    if after is not None and before is not None:
        made = edits(before, after, base.name, kernel.name)
        findings.same(f"{what}: diff", kernel.diff.replace("\r\n", "\n"), made.replace("\r\n", "\n"))


def _timed_sources(contents: Contents, findings: Findings) -> None:
    """Compare the digests of what was timed with the sources, and find sources that belong to nothing."""
    known = {source_file(one.name) for one in (contents.lineage.kernels if contents.lineage else ())}
    for name, samples in contents.timings:
        findings.same(f"{name}: candidate", samples.candidate, contents.manifest.kernel)
        findings.same(f"{name}: source of the candidate", samples.sources.get(samples.candidate, ""), contents.digest)
        for kernel, stated in samples.sources.items():
            known.add(source_file(kernel))
            if (source := contents.sources.get(source_file(kernel))) is not None:
                findings.same(f"{name}: sources: {kernel}", stated, digest(source))
            elif kernel != REFERENCE:
                findings.open(f"the timed source {kernel}", "its text is not in the archive, only its digest")
    for file in contents.sources.keys() - known:
        findings.wrong(file, "a source", "no kernel of this archive has it")
