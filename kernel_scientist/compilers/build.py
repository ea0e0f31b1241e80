"""Builds a worker's request: a C++ kernel with g++, or an extension with torch's builder.

An extension is built by torch's `load_inline` in a confined process, once per (sources, flags, compilers, device). The
built file is never imported in this process. Flags are split as a shell splits them, checked against the list of
allowed flags, and quoted, because torch puts them into commands unchanged.
"""

import functools
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.compilers import flags, gxx
from kernel_scientist.compilers.gxx import Built
from kernel_scientist.compilers.request import BuildRequest, ExtensionRequest, Request
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport
from kernel_scientist.sandbox import bubblewrap, confine

PROCESS = "kernel_scientist.compilers.extension_process"
MEMORY_BYTES = 64 << 30
"""Address space of each process: torch maps gigabytes of GPU libraries, and nvcc reserves more."""
LOG_BYTES = 400_000
"""Most bytes of the process's output, which consists mainly of commands."""
JOBS = 2
PLAIN = re.compile(r"[\w./+@-]+", re.ASCII)
NO_GPU = "this target has no GPU: an extension with cuda_sources or with_cuda=True needs one"
_COMMAND = re.compile(r"^(\[\d+/\d+\]|ninja: |FAILED: |RuntimeError: Error building )|-DTORCH_EXTENSION_NAME=")


@dataclass(frozen=True)
class Tools:
    """This machine's tools that build extensions."""

    version: str
    home: str = ""
    """Folder of the GPU's toolkit."""


@functools.cache
def find(gpu: bool) -> Tools:
    """Return the tools, with those of this machine's GPU if `gpu`. Raises SetupError for a missing one."""
    gxx.find()
    if shutil.which("ninja", path=_path()) is None:
        raise SetupError("ninja is missing; torch needs it to build extensions: run make install, or pip install ninja")
    if not gpu:
        return Tools(gxx.version())
    import torch
    from torch.utils import cpp_extension

    on_rocm = torch.version.hip is not None
    home: str | None = cpp_extension.ROCM_HOME if on_rocm else cpp_extension.CUDA_HOME
    program = Path(home or "/", "bin", "hipcc" if on_rocm else "nvcc")
    if home is None or not program.exists():
        needed = "ROCm's hipcc (set ROCM_HOME)" if on_rocm else "the CUDA toolkit's nvcc (set CUDA_HOME)"
        raise SetupError(f"extensions for this GPU need {needed}, but torch finds none")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    line = next((line for line in said.splitlines() if re.search(r"release|HIP version", line)), program.name)
    return Tools(f"{gxx.version()}, {line.strip()}", home)


@functools.cache
def architecture(device: str) -> str:
    """Return a device's architecture as torch's builder expects it: `9.0a`, `gfx942`, empty for a CPU."""
    if device == "cpu":
        return ""
    import torch

    if torch.version.hip is not None:
        return str(torch.cuda.get_device_properties(device).gcnArchName).partition(":")[0]
    major, minor = torch.cuda.get_device_capability(device)
    return f"{major}.{minor}" + ("a" if major >= 9 else "")  # `a`: instructions of this GPU only


def build(request: Request, device: str, timeout_s: float) -> Built:
    """Compile a request for one of torch's devices, or return the earlier build.

    Compiler errors are in the report, not an exception. Raises SetupError if this machine lacks a tool.
    """
    if isinstance(request, BuildRequest):
        return gxx.build(request, timeout_s)
    arch = architecture(device)
    tools = find(request.with_cuda and bool(arch))
    if reason := _refusal(request, arch):
        return Built(None, CompileReport(ok=False, compiler=tools.version, log=reason))
    return gxx.kept(key(request, arch, tools), lambda scratch: _compile(request, arch, tools, scratch, timeout_s))


def key(request: ExtensionRequest, arch: str, tools: Tools) -> str:
    """Return the digest that names the built object."""
    import torch

    parts = [request._asdict(), arch, tools.version, tools.home, gxx.processor(), torch.__version__]
    return hashlib.sha256(json.dumps([*parts, platform.python_version()]).encode()).hexdigest()


def _refusal(request: ExtensionRequest, arch: str) -> str:
    if not arch and (request.with_cuda or request.cuda_sources):
        return NO_GPU
    try:
        host, device = flags.split((*request.cflags, *request.ldflags)), flags.split(request.cuda_cflags)
    except ValueError as error:
        return f"a flag cannot be read: {error}"
    unprintable = next((flag for flag in (*host, *device) if not flag.isprintable()), None)
    if (bad := flags.forbidden(host) or flags.forbidden_for_device(device) or unprintable) is not None:
        return f"flag {bad!r} is not allowed"
    if (bad := next((path for path in request.include_paths if not PLAIN.fullmatch(path)), None)) is not None:
        return f"include path {bad!r} is not allowed"
    return ""


def _quoted(given: Sequence[str]) -> list[str]:
    """Return flags quoted for ninja's file and the shell that ninja starts."""
    return [shlex.quote(part).replace("$", "$$") for part in flags.split(given)]


def _compile(request: ExtensionRequest, arch: str, tools: Tools, scratch: Path, timeout_s: float) -> Built:
    message = {"arguments": _arguments(request), "environment": _environment(arch, tools)}
    (scratch / "request.json").write_text(json.dumps(message))
    readable = (*bubblewrap.readable(), *bubblewrap.MACHINE, "/dev/urandom", *([tools.home] if tools.home else []))
    command = confine.command([sys.executable, "-P", "-m", PROCESS], scratch, readable)
    built = gxx.run(command, scratch / f"{request.name}.so", tools.version, timeout_s, MEMORY_BYTES, LOG_BYTES)
    return Built(built.path, built.report.model_copy(update={"log": _messages(built.report.log)}))


def _arguments(request: ExtensionRequest) -> dict[str, Any]:
    return {
        "name": request.name,
        "cpp_sources": request.cpp_sources,
        "cuda_sources": request.cuda_sources,
        "functions": request.functions,
        "extra_cflags": _quoted(request.cflags),
        "extra_cuda_cflags": _quoted(request.cuda_cflags),
        "extra_ldflags": [*_quoted(request.ldflags), "-s"],  # no symbols: the file is copied to every worker
        "extra_include_paths": request.include_paths,
        "with_cuda": request.with_cuda,
        "with_pytorch_error_handling": request.error_handling,
        "no_implicit_headers": not request.headers,
    }


def _environment(arch: str, tools: Tools) -> dict[str, str]:
    given = {"PATH": _path(), "CXX": gxx.find(), "MAX_JOBS": str(JOBS), "HOME": "."}
    if not tools.home:
        return given
    homes = dict.fromkeys(("CUDA_HOME", "ROCM_HOME"), tools.home)
    arches = dict.fromkeys(("TORCH_CUDA_ARCH_LIST", "PYTORCH_ROCM_ARCH"), arch)
    # -lcuda is the driver's library; a toolkit has a stub of it
    return {**given, **homes, **arches, "LIBRARY_PATH": str(Path(tools.home, "lib64", "stubs"))}


def _path() -> str:
    """Return the search path of programs: Python's folder first, where pip puts ninja."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def _messages(log: str) -> str:
    lines = log.splitlines()
    kept = [line for before, line in zip(["", *lines], lines, strict=False) if not before.startswith("FAILED: ")]
    return "\n".join(line for line in kept if not _COMMAND.search(line))[: confine.LOG_BYTES]
