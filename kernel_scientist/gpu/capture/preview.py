"""Previews a GPU kernel before it runs: its code objects, whether they fit on the GPU, its predicted time."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.gpu.capture import inspect as inspector
from kernel_scientist.gpu.capture.code_findings import findings
from kernel_scientist.gpu.capture.inspect import Inspection
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.gpu.toolchains import cuda, hip, messages
from kernel_scientist.gpu.toolchains.compiled import Compiled
from kernel_scientist.gpu.toolchains.sources import hipified, joined
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Prediction
from kernel_scientist.records.gpu import Build
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure


@dataclass(frozen=True)
class Preview:
    """The preview of a kernel."""

    report: CompileReport
    predictions: tuple[Prediction, ...]
    refused: bool = False
    """Whether the compiler or the GPU refuses it. Otherwise "not ok" means: it could not be inspected."""


@dataclass(frozen=True)
class Previewer:
    """Previews kernels of one problem for one GPU, which need not be present."""

    problem: Problem
    gpu: Gpu
    harness: Harness

    def preview(self, source: str, cases: Sequence[Case], counts: bool = False) -> "Preview":
        """Return a submission's code objects, and its predicted time per case if its launches are to be counted.

        Raises KernelFailure if its process dies, with verdict `infrastructure` if this machine lacks a compiler. If the
        compiler refuses the code, the report is not ok.
        """
        found = inspector.inspect(source, self.problem, cases, self.gpu, self.harness.inspect_timeout_s, counts)
        report = compiled(found, self.harness.build_timeout_s)
        if not report.ok:
            return Preview(report, (), found.answer.refused or bool(found.answer.inline))
        missed = () if found.answer.inline or not counts else found.unpredicted(self.problem, cases)
        report = report.model_copy(update={"missed": tuple(dict.fromkeys((*report.missed, *missed)))})
        return Preview(report, found.predictions(self.problem, cases))


def refusal(report: CompileReport) -> KernelFailure:
    """Return the failure of a kernel that does not compile or that the GPU would refuse."""
    words = report.log.strip().splitlines() or ["no word from the compiler"]
    return KernelFailure(Verdict.COMPILE_ERROR, f"the compiler refused it: {words[0]}", (report.log,))


def compiled(found: Inspection, timeout_s: float) -> CompileReport:
    """Return a submission's report, including the code objects of its extensions.

    Raises KernelFailure (infrastructure) if this machine lacks a compiler or header.
    """
    report, builds = found.report, found.answer.inline
    if not builds or not report.ok:
        return report
    arch = found.gpu.arch
    done = [_build(build, arch, timeout_s) for build in builds]
    for one, build in zip(done, builds, strict=True):
        if one.missing:
            # the first error may be a mistake of the submission's: what it includes it need not use
            said = messages.summary(one.log, build.name, build.sources, found.source)
            words = f"{one.missing}; the first error without it: {said}" if said else one.missing
            raise KernelFailure(Verdict.INFRASTRUCTURE, f"it cannot be compiled on this machine: {words}")
    logs = [_told(one, build, found.source) for one, build in zip(done, builds, strict=True)]
    objects = [code for one in done if one.ok for code in _objects(one.assembly)]
    text = "\n".join(source for build in builds for source in build.sources)
    changes = {
        "ok": all(one.ok for one in done),
        "compiler": ", ".join(dict.fromkeys(one.compiler for one in done)),
        "seconds": round(report.seconds + sum(one.seconds for one in done), 3),
        "log": "\n".join(log for log in logs if log),
        "objects": (*report.objects, *objects),
        "code_bytes": sum(code.code_bytes for code in (*report.objects, *objects)) or None,
        "findings": tuple(dict.fromkeys((*report.findings, *findings(objects, arch, text)))),
    }
    return report.model_copy(update=changes)


def _told(one: Compiled, build: Build, source: str) -> str:
    """Return a compiler's messages, after one line that says what is wrong in which line of the submission."""
    first = "" if one.ok else messages.summary(one.log, build.name, build.sources, source)
    return f"{first}\n{one.log}" if first else one.log


def _build(build: Build, arch: str, timeout_s: float) -> Compiled:
    source = joined(build.sources, build.name)
    if arch.startswith("gfx"):
        return hip.compile_hip(hipified(source), arch, list(build.flags), timeout_s)
    return cuda.compile_cuda(source, arch, list(build.flags), timeout_s)


def _objects(text: str) -> list[CodeObject]:
    """Return the code objects of a translation unit; its assembly is stored under their digest."""
    assembly.put(text)
    try:
        return assembly.read(text)
    except assembly.AssemblyError as error:  # the text may contain inline assembly of the submission
        raise KernelFailure(Verdict.COMPILE_ERROR, f"its code cannot be read: {error}") from error
