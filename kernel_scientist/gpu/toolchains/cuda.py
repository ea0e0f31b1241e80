"""Compiles CUDA device code with nvcc, or with NVRTC if there is no nvcc, and disassembles it for `assembly.read`."""

import functools
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from kernel_scientist.compilers.flags import forbidden_for_device
from kernel_scientist.gpu.toolchains import disassembly, hip
from kernel_scientist.gpu.toolchains.compiled import Compiled, kept, run
from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import bubblewrap, confine

ARCHES = {"sm_90": "90a"}
"""Feature set per architecture: only sm_90a has Hopper's matrix instructions."""
REPLACED = re.compile(r"^(-arch|--gpu-architecture|-gencode|--generate-code|-code|-lineinfo|-l|-shared|-Xcompiler)")
NVCC_FLAGS = ("-cubin", "-O3", "-std=c++20", "-w", "-DTORCH_EXTENSION_NAME=kernel", "-o", "kernel.cubin")
OF_CUDA = (
    *("cutlass/", "cute/", "cub/", "thrust/", "cuda/", "cuda", "cublas", "cudnn", "curand", "cusparse", "cusolver"),
    *("torch/", "ATen/", "c10/", "pybind11/"),
)


class Compiler(NamedTuple):
    """A compiler with its fixed arguments."""

    program: tuple[str, ...]
    version: str
    headers: bool
    """Whether it can read torch's headers; NVRTC compiles device code only."""


def compile_cuda(source: str, arch: str, flags: list[str], timeout_s: float = 120) -> Compiled:
    """Compile CUDA source for `sm_90`; return its disassembly, possibly from the cache.

    If the compiler refuses the source, the result is not ok.
    """
    compiler = find()
    if compiler is None:
        missing = "no CUDA compiler: neither nvcc nor NVRTC (libnvrtc, with torch's CUDA build) is installed"
        return Compiled(ok=False, compiler="none", missing=missing)
    if arch not in ARCHES:
        return Compiled(
            ok=False, compiler=compiler.version, missing=f"code for {arch} cannot be inspected, sm_90's can"
        )
    if (bad := forbidden_for_device(flags)) is not None:
        return Compiled(ok=False, compiler=compiler.version, log=f"flag {bad!r} is not allowed")
    given = [flag for flag in flags if not REPLACED.search(flag)]
    key = (source, arch, *given, *compiler.program, compiler.version)
    return kept("cuda", key, lambda scratch: _compile(source, ARCHES[arch], given, compiler, scratch, timeout_s))


def _compile(
    source: str, feature: str, flags: list[str], compiler: Compiler, scratch: Path, timeout_s: float
) -> Compiled:
    (scratch / "kernel.cu").write_text(source)
    torch = [str(folder) for folder in hip.torch_headers() if folder.exists()]
    include = [f"-I{folder}" for folder in torch if compiler.headers]
    program = [*compiler.program, f"--gpu-architecture=sm_{feature}", *include, *flags, "kernel.cu"]
    command = confine.command(program, scratch, (*bubblewrap.readable(), *torch))
    ok, log, seconds = run(command, scratch, timeout_s)
    out = scratch / "kernel.cubin"
    if not ok or not out.exists():
        return Compiled(ok=False, compiler=compiler.version, log=log, missing=_missing(log), seconds=seconds)
    try:
        text = disassembly.of_cubin(out.read_bytes(), timeout_s)
    except (SetupError, ValueError) as error:
        return Compiled(ok=False, compiler=compiler.version, log=log, missing=str(error), seconds=seconds)
    return Compiled(ok=True, compiler=compiler.version, log=log, assembly=text, seconds=seconds)


@functools.cache
def find() -> Compiler | None:
    """Return the compiler; None if there is none."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is not None:
        lines = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
        version = next((line for line in lines.splitlines() if "release" in line), "nvcc")
        return Compiler((nvcc, *NVCC_FLAGS), version, headers=True)
    library = _nvrtc()
    if library is None:
        return None
    script = Path(__file__).with_name("nvrtc_process.py")
    return Compiler((sys.executable, "-P", "-S", str(script), str(library)), library.name, headers=False)


def _nvrtc() -> Path | None:
    """Return the NVRTC library of torch's CUDA build."""
    spec = find_spec("nvidia")
    places = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    found = [path for place in places for path in sorted(place.glob("*/lib/libnvrtc.so.*"))]
    return next((path for path in found if "builtins" not in path.name), None)


def _missing(log: str) -> str:
    header = re.search(r"fatal error: ([\w./+-]+): No such file|cannot open source file \"([^\"]+)\"", log)
    name = (header[1] or header[2]) if header else ""
    return f"the header <{name}> is not installed here" if name.startswith(OF_CUDA) else ""
