"""Builds the host code of a HIP submission for the CPU, as a Python module that calls the stand-in for HIP's runtime.

The compiler reads untrusted text and runs confined; what it made is loaded in sandboxed workers only. The device's
code, which another pass compiles to assembly, is linked into the module.
"""

import hashlib
import re
from pathlib import Path

from kernel_scientist.compilers import flags, gxx
from kernel_scientist.compilers.gxx import Built
from kernel_scientist.compilers.request import ExtensionRequest
from kernel_scientist.gpu.fake.recorded_builds import IMPLICIT
from kernel_scientist.gpu.machine.host import headers, library, units
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.gpu.toolchains.hip import Toolchain
from kernel_scientist.gpu.toolchains.sources import hipified, joined
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import confine
from kernel_scientist.sandbox.failure import KernelFailure

MEMORY_BYTES = 16 << 30
"""Address space: the precompiled headers are mapped."""
CODE = """
    .section .data.rel.ro, "aw"
    .balign 16
    .globl __hip_fatbin_
    .hidden __hip_fatbin_
__hip_fatbin_: .asciz "KSCODE1"
    .quad 2f - 1f
1:  .incbin "kernel.s"
2:  .byte 0
    .bss
    .balign 8
    .globl __hip_gpubin_handle_
    .hidden __hip_gpubin_handle_
__hip_gpubin_handle_: .zero 8
    .section .note.GNU-stack, "", @progbits
"""
"""Where the compiled host code looks for the device's code: `native/registry.cpp` reads it."""
LINKED = ("-ltorch", "-ltorch_cpu", "-lc10", "-ltorch_python")
DEFINES = re.compile(r"-[DU][A-Za-z_].*", re.DOTALL)
"""Flags of a submission that matter to host code: the others are for speed or for the device. Libraries are not linked:
a function of theirs that is called is missed when the module is loaded."""
_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: error: (?P<words>.*)$", re.MULTILINE)
_REPEATED = re.compile(r"redefin|redeclar|already|ambiguous|conflicting|different|overload")
"""Errors of sources that repeat each other: torch compiles them apart."""
_TORCHS = re.compile(r"'(torch|at|c10)::|in namespace '(torch|at|c10)'|'nn'|'torch/|undeclared identifier 'torch'")
"""Errors that torch's own extension.h may resolve."""


def build(request: ExtensionRequest, assembly: str, timeout_s: float = 120) -> Built:
    """Compile and link an extension's host code, or return the earlier build.

    assembly: its device code. The compiler's errors are in the report, not an exception. Raises SetupError if this
    machine lacks the compiler, KernelFailure (infrastructure) if it lacks a header that the code needs.
    """
    tools = hip.find()
    if isinstance(tools, str):
        raise SetupError(tools)
    if reason := _refusal(request):
        return Built(None, CompileReport(ok=False, compiler=tools.version, log=reason))
    std = headers.standard(flags.split([*request.cflags, *request.cuda_cflags]))
    place, runtime = headers.folder(tools, std), library.path()
    parts = (*request, assembly, CODE, std, place.name, runtime.name, Path(__file__).read_text())
    name = hashlib.sha256(repr(parts).encode()).hexdigest()
    job = _Job(request, tools, std, place, runtime, timeout_s)
    return gxx.kept(name, lambda scratch: job.built(assembly, scratch))


def whole(request: ExtensionRequest, arch: str, timeout_s: float) -> Built:
    """Compile an extension for a simulated GPU, or return the earlier build.

    The compiler's errors are in the report, not an exception. Raises SetupError if this machine lacks something.
    """
    assembly, seconds = "", 0.0
    if request.cuda_sources:
        sources = [IMPLICIT, *request.cuda_sources] if request.headers else request.cuda_sources
        device = hip.compile_hip(hipified(joined(sources, request.name)), arch, request.cuda_cflags, timeout_s)
        if device.missing:
            raise SetupError(_lacks(device.missing, device.log))
        if not device.ok:
            report = CompileReport(ok=False, compiler=device.compiler, seconds=device.seconds, log=device.log)
            return Built(None, report)
        assembly, seconds = device.assembly, 0.0 if device.cached else device.seconds
    built = build(request, assembly, timeout_s)
    return Built(built.path, built.report.model_copy(update={"seconds": built.report.seconds + seconds}))


class _Job:
    """One extension's passes."""

    def __init__(
        self, request: ExtensionRequest, tools: Toolchain, std: str, place: Path, runtime: Path, timeout_s: float
    ) -> None:
        self.request, self.tools, self.runtime, self.timeout_s = request, tools, runtime, timeout_s
        self.std, self.place = std, place
        self.torch = hip.torch_headers()[0].parent / "lib"
        self.readable = (*tools.readable, *map(str, (self.torch, place, headers.INCLUDE, runtime)))
        self.seconds, self.lacking = 0.0, ""

    def built(self, assembly: str, scratch: Path) -> Built:
        """Compile in one piece, or as torch does, or with all of torch's headers, as the messages suggest.

        Raises KernelFailure (infrastructure) if it fails and a header of ROCm that it includes is not installed.
        """
        texts = units.of(self.request)
        pieces = texts.whole()
        log, objects = self._compiled(pieces, False, scratch)
        if not objects and _REPEATED.search(log):
            pieces = texts.apart()
            log, objects = self._compiled(pieces, False, scratch)
        if not objects and _TORCHS.search(log):
            log, objects = self._compiled(pieces, True, scratch)
        if not objects and self.lacking:
            raise KernelFailure(Verdict.INFRASTRUCTURE, _lacks(self.lacking, log))
        return self._linked(objects, assembly, scratch) if objects else Built(None, self._report(log, ok=False))

    def _compiled(self, pieces: list[str], whole: bool, scratch: Path) -> tuple[str, list[str]]:
        """Return messages, and the objects' names if all pieces compiled."""
        objects: list[str] = []
        for number, text in enumerate(pieces):
            (scratch / f"host{number}.hip").write_text(text)
            out = f"host{number}.o"
            own = [*self._defines(), f"-DTORCH_EXTENSION_NAME={self.request.name}"]
            program = [self.tools.program, *headers.flags(self.tools, self.std, self.place, whole)]
            program += ["-include-pch", str(self.place / "torch_host.pch"), *own]
            command = [*program, "-c", f"host{number}.hip", "-o", out]

            def attempt(command: list[str] = command, path: Path = scratch / out) -> hip.Ran:
                report = self._run(command, path).report
                return report.ok, report.log, report.seconds

            (ok, log, _), lacking = hip.without_unused(attempt, scratch)
            if not ok:
                self.lacking = lacking
                return log, []
            objects.append(out)
        return "", objects

    def _linked(self, objects: list[str], assembly: str, scratch: Path) -> Built:
        (scratch / "kernel.s").write_text(assembly)
        (scratch / "code.S").write_text(CODE)
        out = scratch / f"{self.request.name}.so"
        program = [self.tools.program, "--driver-mode=g++", "-shared", "-s", *objects, "code.S", str(self.runtime)]
        # each object defines the compiler's `__hip_cuid_`; what is undefined is missed when Python loads the module
        built = self._run([*program, "-Wl,-z,now,-z,muldefs", f"-L{self.torch}", *LINKED, "-o", out.name], out)
        return Built(built.path, self._report(built.report.log, built.path is not None))

    def _run(self, program: list[str], out: Path) -> Built:
        built = gxx.run(
            confine.command(program, out.parent, self.readable), out, self.tools.version, self.timeout_s, MEMORY_BYTES
        )
        self.seconds += built.report.seconds
        return built

    def _report(self, log: str, ok: bool) -> CompileReport:
        return CompileReport(ok=ok, compiler=self.tools.version, seconds=round(self.seconds, 3), log=log)

    def _defines(self) -> list[str]:
        given = flags.split([*self.request.cflags, *self.request.cuda_cflags])
        return [flag for flag in given if DEFINES.fullmatch(flag)]


def _lacks(missing: str, log: str) -> str:
    """Return a sentence on what this machine lacks, with the first error of the pass without it: that may be a mistake
    of the submission's."""
    error = _ERROR.search(log)
    words = f"; the first error without it: {error['words']} ({error['file']}, line {error['line']})" if error else ""
    return f"it cannot be compiled on this machine: {missing}{words}"


def _refusal(request: ExtensionRequest) -> str:
    """Return why an extension is not built; empty if it may be."""
    try:
        host, device = flags.split([*request.cflags, *request.ldflags]), flags.split(request.cuda_cflags)
    except ValueError as error:
        return f"a flag cannot be read: {error}"
    device = [flag for flag in device if not hip.REPLACED.search(flag)]
    if (bad := flags.forbidden(host) or flags.forbidden_for_device(device)) is not None:
        return f"flag {bad!r} is not allowed"
    return ""
