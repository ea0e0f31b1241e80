"""The stand-in for HIP's runtime (`native/`): built once for each compiler, and loaded."""

import functools
import hashlib
from pathlib import Path

from kernel_scientist.compilers import gxx
from kernel_scientist.compilers.gxx import Built
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import confine

NATIVE = Path(__file__).parent / "native"
NAME = "libhip_stand_in.so"
"""Its name among the libraries that a module needs: it is loaded before them."""
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-D__HIP_PLATFORM_AMD__=1", "-Wno-attributes")


@functools.cache
def path() -> Path:
    """Return the built library's path. Raises SetupError if it cannot be built here."""
    if not hip.HEADERS.exists():
        raise SetupError(f"no HIP headers: {hip.HEADERS} is missing (Debian: apt-get install libamdhip64-dev)")
    sources = sorted(NATIVE.glob("*.cpp"))
    texts = [file.read_text() for file in (*sources, NATIVE / "state.h", hip.HEADERS.with_name("hip_version.h"))]
    name = hashlib.sha256(repr((*texts, FLAGS, gxx.version())).encode()).hexdigest()
    built = gxx.kept(name, lambda scratch: _compile(sources, scratch))
    if built.path is None:
        raise SetupError(f"the stand-in for HIP's runtime does not compile: {built.report.log[:1000]}")
    return built.path


def found() -> str:
    """Return the built library's path; empty where HIP's headers are not installed: no HIP is compiled there."""
    return str(path()) if hip.HEADERS.exists() else ""


def _compile(sources: list[Path], scratch: Path) -> Built:
    out = scratch / NAME
    program = [gxx.find(), *FLAGS, f"-Wl,-soname,{NAME}", "-Wl,-z,defs", *map(str, sources), "-o", out.name]
    return gxx.run(confine.command(program, scratch, (str(NATIVE),)), out, gxx.version(), 120)
