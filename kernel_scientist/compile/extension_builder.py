"""The builder of extensions: torch's `load_inline` in a confined process, once per (sources, flags, compilers, device).

What comes back from there is a file and words; the file is never imported on this side. Flags are taken apart as a
shell would do it, held against what no submission may give, and quoted: torch puts them into commands as they are.
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
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.compile import flags, gxx
from kernel_scientist.compile.extension import ExtensionRequest
from kernel_scientist.compile.gxx import Built
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport
from kernel_scientist.sandbox import bubblewrap, compiler_process, confine

PROCESS = "kernel_scientist.compile.extension_process"
MEMORY_BYTES = 64 << 30
"""Of address space, each process: torch's build for GPUs maps gigabytes of libraries, nvcc reserves a lot besides."""
LOG_BYTES = 400_000
"""Of the process's words, most of which are commands."""
JOBS = 2
PLAIN = re.compile(r"[\w./+@-]+", re.ASCII)
NO_GPU = "this target has no GPU: an extension with cuda_sources or with_cuda=True needs one"
_COMMAND = re.compile(r"^(\[\d+/\d+\]|ninja: |FAILED: |RuntimeError: Error building )|-DTORCH_EXTENSION_NAME=")


@dataclass(frozen=True)
class Tools:
    """What extensions are built with on this machine."""

    version: str
    home: str = ""
    """Folder of the GPU's toolkit."""


@functools.cache
def find(gpu: bool) -> Tools:
    """Return the tools, with those for the GPU that is here if one is meant. Raises SetupError for a missing one."""
    gxx.find()
    if shutil.which("ninja", path=_path()) is None:
        raise SetupError("no ninja, which torch builds extensions with: make install brings it (pip: ninja)")
    if not gpu:
        return Tools(gxx.version())
    import torch
    from torch.utils import cpp_extension

    on_rocm = torch.version.hip is not None
    home: str | None = cpp_extension.ROCM_HOME if on_rocm else cpp_extension.CUDA_HOME
    program = Path(home or "/", "bin", "hipcc" if on_rocm else "nvcc")
    if home is None or not program.exists():
        needed = "ROCm's hipcc (set ROCM_HOME)" if on_rocm else "the CUDA toolkit's nvcc (set CUDA_HOME)"
        raise SetupError(f"extensions for this GPU need {needed}, and torch finds none")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    line = next((line for line in said.splitlines() if re.search(r"release|HIP version", line)), program.name)
    return Tools(f"{gxx.version()}, {line.strip()}", home)


@functools.cache
def architecture(device: str) -> str:
    """Return a device's architecture as torch's builder takes it: `9.0a`, `gfx942`, nothing for a CPU."""
    if device == "cpu":
        return ""
    import torch

    if torch.version.hip is not None:
        return str(torch.cuda.get_device_properties(device).gcnArchName).partition(":")[0]
    major, minor = torch.cuda.get_device_capability(device)
    return f"{major}.{minor}" + ("a" if major >= 9 else "")  # with the instructions that are this part's alone


def build(request: ExtensionRequest, arch: str, timeout_s: float) -> Built:
    """Compile an extension for an architecture ("": a CPU), or return what was built before.

    A refusal is a report, not an exception. Raises SetupError where this machine lacks a tool.
    """
    tools = find(request.with_cuda and bool(arch))
    if words := _refusal(request, arch):
        return Built(None, CompileReport(ok=False, compiler=tools.version, log=words))
    return gxx.kept(key(request, arch, tools), lambda scratch: _compile(request, arch, tools, scratch, timeout_s))


def key(request: ExtensionRequest, arch: str, tools: Tools) -> str:
    """Return the digest that names the built object."""
    import torch

    parts = [request._asdict(), arch, tools.version, tools.home, gxx.processor(), torch.__version__]
    return hashlib.sha256(json.dumps([*parts, platform.python_version()]).encode()).hexdigest()


def _refusal(request: ExtensionRequest, arch: str) -> str:
    """Return why a request is not built, or nothing."""
    if not arch and (request.with_cuda or request.cuda_sources):
        return NO_GPU
    try:
        host, device = _taken((*request.cflags, *request.ldflags)), _taken(request.cuda_cflags)
    except ValueError as error:
        return f"a flag cannot be read: {error}"
    unprintable = next((flag for flag in (*host, *device) if not flag.isprintable()), None)
    if (bad := flags.forbidden(host) or flags.forbidden_for_device(device) or unprintable) is not None:
        return f"flag {bad!r} is not allowed"
    if (bad := next((path for path in request.include_paths if not PLAIN.fullmatch(path)), None)) is not None:
        return f"include path {bad!r} is not allowed"
    return ""


def _taken(given: Sequence[str]) -> list[str]:
    """Return flags one by one, without a shell's quotes. Raises ValueError."""
    return [part for flag in given for part in shlex.split(flag)]


def _quoted(given: Sequence[str]) -> list[str]:
    """Return flags as ninja's file and the shell behind it take them for what they are."""
    return [shlex.quote(part).replace("$", "$$") for part in _taken(given)]


def _compile(request: ExtensionRequest, arch: str, tools: Tools, scratch: Path, timeout_s: float) -> Built:
    message = {"arguments": _arguments(request), "environment": _environment(arch, tools)}
    (scratch / "request.json").write_text(json.dumps(message))
    readable = (*bubblewrap.readable(), *bubblewrap.MACHINE, "/dev/urandom", *([tools.home] if tools.home else []))
    command = confine.command([sys.executable, "-P", "-m", PROCESS], scratch, readable)
    start = time.monotonic()
    status, log = compiler_process.run(command, scratch, timeout_s, MEMORY_BYTES, LOG_BYTES)
    seconds = round(time.monotonic() - start, 3)
    words = _words(log)
    if status is None:
        words = f"the compilers took longer than {timeout_s:g} s and were stopped\n{words}"
    out = scratch / f"{request.name}.so"
    if status != 0 or not out.is_file():
        return Built(None, CompileReport(ok=False, compiler=tools.version, seconds=seconds, log=words))
    report = CompileReport(ok=True, compiler=tools.version, seconds=seconds, log=words)
    return Built(out, report.model_copy(update={"code_bytes": out.stat().st_size}))


def _arguments(request: ExtensionRequest) -> dict[str, Any]:
    """Return what torch's `load_inline` is called with."""
    return {
        "name": request.name,
        "cpp_sources": request.cpp_sources,
        "cuda_sources": request.cuda_sources,
        "functions": request.functions,
        "extra_cflags": _quoted(request.cflags),
        "extra_cuda_cflags": _quoted(request.cuda_cflags),
        "extra_ldflags": [*_quoted(request.ldflags), "-s"],  # without symbols: it travels to every worker
        "extra_include_paths": request.include_paths,
        "with_cuda": request.with_cuda,
        "with_pytorch_error_handling": request.error_handling,
        "no_implicit_headers": not request.headers,
    }


def _environment(arch: str, tools: Tools) -> dict[str, str]:
    """Return what the process knows besides PATH: torch looks for tools and for the architecture in it."""
    given = {"PATH": _path(), "CXX": gxx.find(), "MAX_JOBS": str(JOBS), "HOME": "."}
    if not tools.home:
        return given
    homes = dict.fromkeys(("CUDA_HOME", "ROCM_HOME"), tools.home)
    arches = dict.fromkeys(("TORCH_CUDA_ARCH_LIST", "PYTORCH_ROCM_ARCH"), arch)
    # -lcuda is the driver's library, which a toolkit has a stub of
    return {**given, **homes, **arches, "LIBRARY_PATH": str(Path(tools.home, "lib64", "stubs"))}


def _path() -> str:
    """Return where programs are looked for: first beside Python, where pip puts ninja."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def _words(log: str) -> str:
    """Return what compilers said, without the commands that ninja shows."""
    lines = log.splitlines()
    said = [line for before, line in zip(["", *lines], lines, strict=False) if not before.startswith("FAILED: ")]
    return "\n".join(line for line in said if not _COMMAND.search(line))[: compiler_process.LOG_BYTES]
