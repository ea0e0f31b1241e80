"""Finds a compiler of HIP device code: ROCm's hipcc, or clang with Debian's headers and our additions.

`include/rocm` adds what Debian's headers (5.2) lack of ROCm 6; `include/torch` adds what a torch without ROCm lacks.
"""

import functools
import hashlib
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

CLANGS = ("clang-20", "clang-21", "clang-22", "clang-19")
"""In order of preference; 19 and later support gfx942, 20 and later gfx950."""
INCLUDE = Path(__file__).parent / "include"
HEADERS = Path("/usr/include/hip/hip_runtime.h")
LIBRARIES = ("ocml", "oclc_unsafe_math_off", "oclc_finite_only_off", "oclc_daz_opt_off")
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
        return tuple(part for pair in both for part in pair)


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
    """Return a digest of our headers."""
    texts = [path.read_bytes() for path in sorted(INCLUDE.rglob("*.h"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def forwarders(folder: Path) -> None:
    """Write headers that include ours into the folders that `Toolchain.includes` names."""
    for place, names, ours in (("on_rocm", ON_ROCM, "torch_on_rocm.h"), ("lite", LITE, "torch_lite.h")):
        for name in names:
            path = folder / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#pragma once\n#include <{ours}>\n")


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
