"""Compiles HIP device code for an AMD GPU that need not be present. The compiler runs confined.

It is ROCm's hipcc, or clang with Debian's headers and our additions: `include/rocm` adds what Debian's headers (5.2)
lack of ROCm 6; `include/torch` adds what a torch without ROCm lacks.
"""

import functools
import hashlib
import re
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kernel_scientist.compilers.flags import forbidden_for_device, split
from kernel_scientist.gpu.toolchains import older_headers
from kernel_scientist.gpu.toolchains.compiled import Compiled, kept, run
from kernel_scientist.sandbox import confine

CLANGS = ("clang-20", "clang-21", "clang-22", "clang-19")
"""In order of preference; 19 and later support gfx942, 20 and later gfx950."""
INCLUDE = Path(__file__).parent / "include"
HEADERS = Path("/usr/include/hip/hip_runtime.h")
LIBRARIES = ("hip", "ocml", "ockl", "oclc_unsafe_math_off", "oclc_finite_only_off", "oclc_daz_opt_off")
"""`hip` has the fence of `__syncthreads`; without it each barrier is two calls, and registers are saved around them."""
SETTINGS = ("oclc_correctly_rounded_sqrt_on", "oclc_wavefrontsize64_on", "oclc_isa_version_940")
"""ocml uses the ISA version only to select the family; the newest one of gfx942's family in 5.2 is gfx940."""
_GUARDS = ("Exception", "Functions", "Guard", "Stream")
ON_ROCM = (
    *(f"c10/{low}/{up}{part}.h" for low, up in (("hip", "HIP"), ("cuda", "CUDA")) for part in _GUARDS),
    *("ATen/cuda/CUDAContext.h", "ATen/cuda/Exceptions.h", "ATen/hip/HIPContext.h", "ATen/hip/Exceptions.h"),
    "ATen/hip/impl/HIPGuardImplMasqueradingAsCUDA.h",
    "ATen/hip/impl/HIPStreamMasqueradingAsCUDA.h",
)
"""Headers of torch's ROCm build that `torch_on_rocm.h` replaces."""
LITE = (
    *(f"torch/{name}.h" for name in ("extension", "types", "torch", "all", "python")),
    *("ATen/ATen.h", "ATen/core/Tensor.h", "c10/util/BFloat16.h", "c10/util/Half.h", "c10/util/Exception.h"),
    *("pybind11/pybind11.h", "pybind11/stl.h"),
)
"""Headers of torch that `torch_lite.h` replaces at the first attempt."""
BASE_FLAGS = (
    *("--offload-device-only", "-S", "-O3", "-std=c++20", "-munsafe-fp-atomics", "-Wno-everything"),
    "-gline-tables-only",
)
"""Line tables change no instruction; they say which line of the source one belongs to."""
INLINED = ("-mllvm", "-amdgpu-early-inline-all=true", "-mllvm", "-amdgpu-function-calls=false")
"""What `hipcc` adds to clang's flags unless `-O0` is among them (`amd/hipcc/src/hipBin_amd.h`): device functions become
part of their kernels before arrays become registers. Without them arrays of lambdas and templates stay in scratch."""
REPLACED = re.compile(
    r"^(--offload-arch|--amdgpu-target|-fgpu-rdc|-fno-gpu-rdc|-fPIC|-shared|-l|-v$|--?save-temps(=\w+)?$)"
)
"""Flags of a submission that are dropped: they are not needed, or set here."""
OF_ROCM = (
    *("hip/", "rocwmma/", "hipcub/", "rocprim/", "rocthrust/", "thrust/", "cub/", "ck/", "ck_tile/", "rocblas/"),
    *("hipblas", "rocrand/", "hiprand/", "miopen/", "rccl/", "torch/", "ATen/", "c10/", "pybind11/", "omp.h"),
    *("rocsparse/", "hipsparse", "rocsolver/", "hipsolver/", "rocfft/", "hipfft/", "hiptensor/", "roctracer/"),
)
"""Prefixes of headers that come with ROCm or torch's ROCm build."""
OF_TORCH = ("torch/", "ATen/", "c10/", "pybind11/")
UNUSED, MOST_UNUSED = "unused", 16
"""Folder of empty headers in place of ROCm's that are not installed, and how many there may be: submissions include
more than they use."""
TEXT_BYTES = 32 << 20
_REFERRED = re.compile(r"(?<![\w$.])([\w$.]+)@(?:rel32|gotpcrel32)@lo")
_DEFINED = re.compile(r"^\s*(?:\.(?:set|comm|lcomm|amdgpu_lds)\s+)?([\w$.]+)\s*[:,]", re.MULTILINE)
"""Symbols in assembly: references in code, and labels or definitions."""
_TORCH = re.compile(r"#\s*include\s*[<\"](torch|ATen|c10|pybind11)/")
_SAID = re.compile(r": (?:fatal )?error: |: note: candidate")
"""What a compiler says, without the code that it quotes and the files that led there."""
_HOST = re.compile(
    r"at::|c10::|torch|Tensor|pybind|py::|AT_|TORCH_|'(ATen|c10)/|error: (no member|use of undecl|unknown type)"
)
"""Errors that torch's complete headers may resolve."""


@dataclass(frozen=True)
class Toolchain:
    """A compiler and its arguments."""

    program: str
    version: str
    flags: tuple[str, ...]
    readable: tuple[str, ...]
    """Folders that it must be able to read besides the system's."""
    rocm: bool
    """Whether it is ROCm's own."""

    def includes(self, lite: bool) -> tuple[str, ...]:
        """Return the include flags: for torch's own headers, or for the few declarations of `include/lite`."""
        search = "-idirafter" if self.rocm else "-isystem"
        own = [INCLUDE / "torch", *([] if self.rocm else [INCLUDE / "rocm"])]
        folders = [Path("lite"), INCLUDE / "lite"] if lite else [f for f in torch_headers() if f.exists()]
        named = [(search, str(folder)) for folder in ("on_rocm", *own)]
        given = [("-isystem", str(folder)) for folder in folders]
        both = [*given, *named] if self.rocm else [*named, *given]
        return tuple(part for pair in (*both, ("-idirafter", UNUSED)) for part in pair)


def compile_hip(source: str, arch: str, flags: list[str], timeout_s: float = 120) -> Compiled:
    """Compile HIP source to assembly for `gfx942`, `gfx950`, ...; the result may come from the cache.

    flags: the submission's flags for the device compiler. If the compiler refuses the source, the result is not ok.
    """
    tools = find()
    if isinstance(tools, str):
        return Compiled(ok=False, compiler="none", missing=tools)
    try:
        given = [flag for flag in split(flags) if not REPLACED.search(flag)]
    except ValueError as error:
        return Compiled(ok=False, compiler=tools.version, log=f"a flag cannot be read: {error}")
    if (bad := forbidden_for_device(given)) is not None:
        return Compiled(ok=False, compiler=tools.version, log=f"flag {bad!r} is not allowed")
    key = (source, arch, *given, tools.version, *BASE_FLAGS, *tools.flags, fingerprint())
    return kept("hip", key, lambda scratch: _compile(source, arch, given, tools, scratch, timeout_s))


def _compile(source: str, arch: str, flags: list[str], tools: Toolchain, scratch: Path, timeout_s: float) -> Compiled:
    """Compile with the few torch declarations that most host code needs, and with torch's own headers if that fails."""
    (scratch / "kernel.hip").write_text(source)
    forwarders(scratch)
    end = time.monotonic() + timeout_s
    first = _attempt(arch, flags, tools, scratch, timeout_s, lite=True)
    errors = "\n".join(line for line in first.log.splitlines() if _SAID.search(line))
    if first.ok or not (_TORCH.search(source) and _HOST.search(errors)):
        return first
    second = _attempt(arch, flags, tools, scratch, max(end - time.monotonic(), 1.0), lite=False)
    return second.model_copy(update={"seconds": first.seconds + second.seconds})


def _attempt(arch: str, flags: list[str], tools: Toolchain, scratch: Path, timeout_s: float, lite: bool) -> Compiled:
    out = scratch / "kernel.s"
    out.unlink(missing_ok=True)
    inlined = () if tools.rocm or "-O0" in flags else INLINED
    base = (f"--offload-arch={arch}", *BASE_FLAGS, *inlined, *tools.flags)
    program = [tools.program, *base, *tools.includes(lite), *flags]
    command = confine.command([*program, "-o", out.name, "kernel.hip"], scratch, tools.readable)
    (ok, log, seconds), lacking = without_unused(lambda: run(command, scratch, timeout_s), scratch)
    if ok and out.exists() and out.stat().st_size > TEXT_BYTES:
        ok, log = (
            False,
            f"error: its assembly has {out.stat().st_size >> 20} MiB, and {TEXT_BYTES >> 20} may be read\n{log}",
        )
    if not ok or not out.exists():
        missing = _missing(log, arch, tools) or lacking
        if re.search(r"undeclared identifier '__builtin_amdgcn_", log):
            log += f"note: {tools.version} may be older than the builtin\n"
        return Compiled(ok=False, compiler=tools.version, log=log, missing=missing, seconds=seconds)
    text = out.read_text(errors="replace")
    ok, note = _unlinked(text, tools)
    return Compiled(ok=ok, compiler=tools.version, log=log + note, assembly=text if ok else "", seconds=seconds)


Ran = tuple[bool, str, float]
"""Whether a pass succeeded, its messages and seconds."""


def without_unused(attempt: Callable[[], Ran], folder: Path) -> tuple[Ran, str]:
    """Return what a pass in a folder gives with empty headers in place of ROCm's that are not installed, and a sentence
    on the first of those; empty if there is none. If the pass succeeds, it needs nothing of them."""
    lacking, total = "", 0.0
    shutil.rmtree(folder / UNUSED, ignore_errors=True)  # an earlier pass's
    for left in reversed(range(MOST_UNUSED + 1)):
        ok, log, seconds = attempt()
        total += seconds
        name, words = _absent(log)
        if ok or not left or not name or name.startswith(OF_TORCH):
            return (ok, log, total), lacking
        lacking = lacking or words
        path = folder / UNUSED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#pragma once\n")
    raise AssertionError("the last attempt returns")


def _absent(log: str) -> tuple[str, str]:
    """Return a header of ROCm that is not installed, and a sentence on it; both empty if there is none."""
    header = re.search(r"(\S+):(\d+):\d+: fatal error: '([^']+)' file not found", log)
    if header is None or not header[3].startswith(OF_ROCM) or ".." in header[3]:
        return "", ""
    file, line, name = header.groups()
    words = f"the header <{name}> is not installed here ({file}, line {line})"
    return name, f"{words}; ROCm or torch's ROCm build would bring it along"


def _missing(log: str, arch: str, tools: Toolchain) -> str:
    """Return what this machine lacks according to the compiler's messages; empty if nothing."""
    if re.search(r"invalid target ID|unsupported HIP gpu architecture", log):
        return f"{tools.version} does not know {arch} (gfx950 needs LLVM 20 or ROCm 7)"
    return _absent(log)[1]


def _unlinked(assembly: str, tools: Toolchain) -> tuple[bool, str]:
    """Return whether code could be loaded, and a note about symbols that it refers to and does not define.

    Where the device libraries are not installed, their functions are such symbols, and figures are not true.
    """
    names = sorted(set(_REFERRED.findall(assembly)) - set(_DEFINED.findall(assembly)))
    if not names:
        return True, ""
    if not tools.rocm and not _libraries():
        return True, f"note: {', '.join(names)} are called, not inlined: install rocm-device-libs for true figures\n"
    words = "is used and not defined" if len(names) == 1 else "are used and not defined"
    return False, f"error: {', '.join(names)} {words} in device code: it could not be loaded\n"


@functools.cache
def find() -> Toolchain | str:
    """Return the compiler, or a sentence that says why there is none."""
    torch = ("-DUSE_ROCM=1", "-DTORCH_EXTENSION_NAME=kernel")
    hipcc = shutil.which("hipcc") or shutil.which("/opt/rocm/bin/hipcc")
    if hipcc is not None:
        return Toolchain(hipcc, _version(hipcc), torch, _readable(), rocm=True)
    clang = next((path for name in CLANGS if (path := shutil.which(name)) is not None), None)
    if clang is None:
        return "no HIP compiler: neither hipcc nor clang-19 is installed (Debian: apt-get install clang-19)"
    if not HEADERS.exists():
        return f"no HIP headers: {HEADERS} is missing (Debian: apt-get install libamdhip64-dev)"
    flags = ("-x", "hip", "-nogpulib", "-D__HIP_PLATFORM_AMD__=1", "-include", "device_functions.h", *torch)
    return Toolchain(clang, _version(clang), (*flags, *_libraries()), _readable(), rocm=False)


@functools.cache
def fingerprint() -> str:
    """Return a digest of our headers and of this module."""
    texts = [path.read_bytes() for path in (*sorted(INCLUDE.rglob("*.h")), Path(__file__))]
    texts += [text.encode() for text in older_headers.mended().values()]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def forwarders(folder: Path) -> None:
    """Write headers that include ours, and mended ones, into the folders that `Toolchain.includes` names."""
    for place, names, ours in (("on_rocm", ON_ROCM, "torch_on_rocm.h"), ("lite", LITE, "torch_lite.h")):
        for name in names:
            path = folder / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#pragma once\n#include <{ours}>\n")
    for name, text in older_headers.mended().items():
        path = folder / "on_rocm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _libraries() -> tuple[str, ...]:
    """Return the flags that link Debian's device libraries (rocm-device-libs); empty if they are not installed."""
    found = next(iter(sorted(Path("/usr/lib").glob("*/amdgcn/bitcode/ocml.bc"))), None)
    if found is None:
        return ()
    files = [found.with_name(f"{name}.bc") for name in (*LIBRARIES, *SETTINGS)]
    options = (("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(file)) for file in files if file.exists())
    return tuple(flag for option in options for flag in option)


def torch_headers() -> tuple[Path, ...]:
    """Return the folders of torch's and Python's headers; they need not exist."""
    spec = find_spec("torch")  # not imported: it takes seconds
    python = Path(sysconfig.get_path("include"))
    if spec is None or spec.origin is None:
        return (python,)
    include = Path(spec.origin).parent / "include"
    return (include, include / "torch/csrc/api/include", python)


def _readable() -> tuple[str, ...]:
    return (str(INCLUDE), *(str(folder) for folder in torch_headers()))


def _version(program: str) -> str:
    out = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    line = next((line for line in out.splitlines() if re.search(r"clang|HIP version", line)), Path(program).name)
    return line.strip()
