"""The HIP or CUDA that a submission hands to torch's extension builder, compiled for a GPU that is not there."""

from kernel_scientist.harness.failure import KernelFailure
from kernel_scientist.inspection import assembly, assembly_store, cuda, hip, unit
from kernel_scientist.inspection.compiled import Compiled
from kernel_scientist.inspection.findings import findings
from kernel_scientist.inspection.inspector import Build, Inspection
from kernel_scientist.records import CodeObject, CompileReport, Verdict


def compiled(found: Inspection, timeout_s: float) -> CompileReport:
    """Return the report of a submission with what its extensions compile to.

    Raises KernelFailure (infrastructure) where this machine lacks a compiler or a header for them.
    """
    report, builds = found.report, found.answer.inline
    if not builds or not report.ok:
        return report
    arch = found.gpu.arch
    done = [_build(build, arch, timeout_s) for build in builds]
    if missing := next((one.missing for one in done if one.missing), ""):
        raise KernelFailure(Verdict.INFRASTRUCTURE, f"it cannot be compiled on this machine: {missing}")
    objects = [code for one in done if one.ok for code in _objects(one.assembly)]
    text = "\n".join(source for build in builds for source in build.sources)
    changes = {
        "ok": all(one.ok for one in done),
        "compiler": ", ".join(dict.fromkeys(one.compiler for one in done)),
        "seconds": round(report.seconds + sum(one.seconds for one in done), 3),
        "log": "\n".join(one.log for one in done if one.log),
        "objects": (*report.objects, *objects),
        "code_bytes": sum(code.code_bytes for code in (*report.objects, *objects)) or None,
        "findings": tuple(dict.fromkeys((*report.findings, *findings(objects, arch, text)))),
    }
    return report.model_copy(update=changes)


def _build(build: Build, arch: str, timeout_s: float) -> Compiled:
    source = unit.of(build.sources, build.name)
    if arch.startswith("gfx"):
        return hip.compile_hip(unit.hipified(source), arch, list(build.flags), timeout_s)
    return cuda.compile_cuda(source, arch, list(build.flags), timeout_s)


def _objects(text: str) -> list[CodeObject]:
    """Read the code objects of a translation unit; its assembly is kept under the digest that they name."""
    assembly_store.put(text)
    try:
        return assembly.read(text)
    except assembly.AssemblyError as error:  # the submission's own assembly stands in it, whatever that is
        raise KernelFailure(Verdict.COMPILE_ERROR, f"its code cannot be read: {error}") from error
