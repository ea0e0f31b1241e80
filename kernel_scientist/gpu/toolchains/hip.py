"""Compiles HIP device code for an AMD GPU that need not be present. The compiler runs confined."""

import re
import time
from pathlib import Path

from kernel_scientist.compile.flags import forbidden_for_device
from kernel_scientist.gpu.toolchains import rocm
from kernel_scientist.gpu.toolchains.compiled import Compiled, kept, run
from kernel_scientist.gpu.toolchains.rocm import Toolchain
from kernel_scientist.sandbox import confine

BASE_FLAGS = ("--offload-device-only", "-S", "-O3", "-std=c++20", "-munsafe-fp-atomics", "-Wno-everything")
REPLACED = re.compile(r"^(--offload-arch|--amdgpu-target|-fgpu-rdc|-fno-gpu-rdc|-fPIC|-shared|-l|-v$)")
"""Flags of a submission that are dropped: they are not needed, or set here."""
OF_ROCM = (
    *("hip/", "rocwmma/", "hipcub/", "rocprim/", "rocthrust/", "thrust/", "cub/", "ck/", "ck_tile/", "rocblas/"),
    *("hipblas", "rocrand/", "hiprand/", "miopen/", "rccl/", "torch/", "ATen/", "c10/", "pybind11/"),
)
"""Prefixes of headers that come with ROCm or torch's ROCm build."""
TEXT_BYTES = 32 << 20
_TORCH = re.compile(r"#\s*include\s*[<\"](torch|ATen|c10|pybind11)/")
_HOST = re.compile(r"at::|c10::|torch|Tensor|pybind|py::|AT_|TORCH_|error: (no member|use of undecl|unknown type)")
"""Errors that torch's complete headers may resolve."""


def compile_hip(source: str, arch: str, flags: list[str], timeout_s: float = 120) -> Compiled:
    """Compile HIP source to assembly for `gfx942`, `gfx950`, ...; the result may come from the cache.

    flags: the submission's flags for the device compiler. If the compiler refuses the source, the result is not ok.
    """
    tools = rocm.find()
    if isinstance(tools, str):
        return Compiled(ok=False, compiler="none", missing=tools)
    if (bad := forbidden_for_device(flags)) is not None:
        return Compiled(ok=False, compiler=tools.version, log=f"flag {bad!r} is not allowed")
    given = [flag for flag in flags if not REPLACED.search(flag)]
    key = (source, arch, *given, tools.version, *BASE_FLAGS, *tools.flags, rocm.fingerprint())
    return kept("hip", key, lambda scratch: _compile(source, arch, given, tools, scratch, timeout_s))


def _compile(source: str, arch: str, flags: list[str], tools: Toolchain, scratch: Path, timeout_s: float) -> Compiled:
    """Compile with the few torch declarations that most host code needs, and with torch's own headers if that fails."""
    (scratch / "kernel.hip").write_text(source)
    rocm.forwarders(scratch)
    end = time.monotonic() + timeout_s
    first = _attempt(arch, flags, tools, scratch, timeout_s, lite=True)
    if first.ok or not (_TORCH.search(source) and _HOST.search(first.log)):
        return first
    second = _attempt(arch, flags, tools, scratch, max(end - time.monotonic(), 1.0), lite=False)
    return second.model_copy(update={"seconds": first.seconds + second.seconds})


def _attempt(arch: str, flags: list[str], tools: Toolchain, scratch: Path, timeout_s: float, lite: bool) -> Compiled:
    out = scratch / "kernel.s"
    out.unlink(missing_ok=True)
    program = [tools.program, f"--offload-arch={arch}", *BASE_FLAGS, *tools.flags, *tools.includes(lite), *flags]
    command = confine.command([*program, "-o", out.name, "kernel.hip"], scratch, tools.readable)
    ok, log, seconds = run(command, scratch, timeout_s)
    if not ok or not out.exists() or out.stat().st_size > TEXT_BYTES:
        missing = _missing(log, arch, tools)
        if re.search(r"undeclared identifier '__builtin_amdgcn_", log):
            log += f"note: {tools.version} may be older than the builtin\n"
        return Compiled(ok=False, compiler=tools.version, log=log, missing=missing, seconds=seconds)
    text = out.read_text(errors="replace")
    return Compiled(ok=True, compiler=tools.version, log=log + _unlinked(text), assembly=text, seconds=seconds)


def _missing(log: str, arch: str, tools: Toolchain) -> str:
    """Return what this machine lacks according to the compiler's messages; empty if nothing."""
    if re.search(r"invalid target ID|unsupported HIP gpu architecture", log):
        return f"{tools.version} does not know {arch} (gfx950 needs LLVM 20 or ROCm 7)"
    header = re.search(r"fatal error: '([^']+)' file not found", log)
    if header is not None and header[1].startswith(OF_ROCM):
        return f"the header <{header[1]}> is not installed here; ROCm or torch's ROCm build would bring it along"
    return ""


def _unlinked(assembly: str) -> str:
    """Return a note about device library functions that are called instead of inlined; empty if there are none."""
    names = sorted(set(re.findall(r"\b__(?:ocml|ockl)_\w+(?=@rel32)", assembly)))
    if not names:
        return ""
    return f"note: {', '.join(names)} are called, not inlined: install rocm-device-libs for true figures\n"
