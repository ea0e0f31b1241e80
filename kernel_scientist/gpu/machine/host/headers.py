"""The precompiled headers of host code: torch's, pybind11's and HIP's, once for each compiler and language standard.

They take 20 seconds and 110 MB; a submission's pass takes two to five seconds with them.
"""

import hashlib
import os
from pathlib import Path

from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.gpu.toolchains.compiled import run
from kernel_scientist.gpu.toolchains.hip import Toolchain
from kernel_scientist.records import environment
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.sandbox import confine

INCLUDE = Path(__file__).parent / "include"
FLAGS = (
    *("-x", "hip", "--offload-host-only", "-nogpulib", "-O0", "-fPIC", "-pthread", "-Wno-everything"),
    *("-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1", "-DTORCH_API_INCLUDE_EXTENSION_H", "-fpch-instantiate-templates"),
    # Otherwise functions of the host and of the device that have one name are merged.
    *("-Xclang", "-fno-cxx-modules"),
)
REPLACED = ("torch/extension.h", "torch/torch.h", "torch/all.h", "torch/python.h")
"""Headers of torch that `torch_host.h` replaces at the first attempt."""
STANDARDS = ("c++20", "gnu++20", "c++23", "gnu++23", "c++2b", "gnu++2b")
"""torch's headers need C++20; a submission's older standard is raised to it."""
TIMEOUT_S = 300


def standard(flags: list[str]) -> str:
    """Return the language standard for a submission's flags."""
    given = [flag.partition("=")[2] for flag in flags if flag.startswith(("-std=", "--std="))]
    return given[-1] if given and given[-1] in STANDARDS else STANDARDS[0]


def folder(tools: Toolchain, std: str) -> Path:
    """Return the folder of headers; they are compiled if they are not there. It never changes its place or content.

    Raises InfrastructureError if they do not compile.
    """
    kept = environment.cache_folder().resolve() / "hip-host"
    # Precompiled headers name the files that they were made of: a folder that was moved needs others.
    key = (str(INCLUDE), str(kept), *(file.read_text() for file in sorted(INCLUDE.iterdir())))
    digest = hashlib.sha256(repr((*key, tools.version, hip.fingerprint(), std, *FLAGS, *_versions())).encode())
    place = kept / digest.hexdigest()[:32]
    if not (place / "torch_host.pch").exists():
        _compile(tools, std, place)
    return place


def flags(tools: Toolchain, std: str, place: Path, whole: bool) -> list[str]:
    """Return the compiler's flags.

    whole: with torch's own extension.h.
    """
    includes = [str(place / part) if part == "on_rocm" else part for part in tools.includes(lite=False)]
    replacing = [] if whole else ["-isystem", str(place / "replaced")]
    return [*FLAGS, f"-std={std}", "-isystem", str(INCLUDE), *replacing, *includes]


def _compile(tools: Toolchain, std: str, place: Path) -> None:
    """Compile into a file of this process, and rename it: another process may do the same at this time."""
    place.mkdir(parents=True, exist_ok=True)
    hip.forwarders(place)
    for name in REPLACED:
        environment.keep(place / "replaced" / name, "#pragma once\n#include <torch_host.h>\n")
    made = f"{os.getpid()}.pch"
    program = [tools.program, *flags(tools, std, place, whole=False), "-Xclang", "-emit-pch"]
    command = [*program, "-Xclang", "-fno-pch-timestamp", "-c", str(INCLUDE / "torch_host.h"), "-o", made]
    ok, log, _ = run(confine.command(command, place, (*tools.readable, str(INCLUDE))), place, TIMEOUT_S)
    if not ok:
        (place / made).unlink(missing_ok=True)
        raise InfrastructureError(f"the headers of HIP host code do not compile with {tools.version}: {log[:1000]}")
    (place / made).replace(place / "torch_host.pch")


def _versions() -> tuple[str, ...]:
    """Return what tells one installation of the headers from another."""
    files = [path / "torch/headeronly/version.h" for path in hip.torch_headers()] + [hip.HEADERS]
    return tuple(f"{file} {file.stat().st_mtime_ns}" for file in files if file.exists())
