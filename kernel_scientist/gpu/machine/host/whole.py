"""Builds a HIP submission whole: its device code for the GPU, its host code for the CPU."""

from kernel_scientist.compile.gxx import Built
from kernel_scientist.compile.request import ExtensionRequest
from kernel_scientist.gpu.capture.recorded_builds import IMPLICIT
from kernel_scientist.gpu.machine.host import build as host
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.gpu.toolchains.sources import hipified, joined
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport


def build(request: ExtensionRequest, arch: str, timeout_s: float) -> Built:
    """Compile an extension for a simulated GPU, or return the earlier build.

    The compiler's errors are in the report, not an exception. Raises SetupError if this machine lacks something.
    """
    assembly, seconds = "", 0.0
    if request.cuda_sources:
        sources = [IMPLICIT, *request.cuda_sources] if request.headers else request.cuda_sources
        device = hip.compile_hip(hipified(joined(sources, request.name)), arch, request.cuda_cflags, timeout_s)
        if device.missing:
            raise SetupError(f"it cannot be compiled on this machine: {device.missing}")
        if not device.ok:
            report = CompileReport(ok=False, compiler=device.compiler, seconds=device.seconds, log=device.log)
            return Built(None, report)
        assembly, seconds = device.assembly, 0.0 if device.cached else device.seconds
    built = host.build(request, assembly, timeout_s)
    return Built(built.path, built.report.model_copy(update={"seconds": built.report.seconds + seconds}))
