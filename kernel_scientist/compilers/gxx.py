"""The C++ compiler: builds a kernel's shared object, once per (source, flags, compiler, processor), and inspects it.

The compiler reads untrusted text, so it runs with limits and cannot read our files (`confine`).
"""

import errno
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kernel_scientist.compilers import disassembly, flags
from kernel_scientist.compilers.request import BuildRequest
from kernel_scientist.records import disk, environment
from kernel_scientist.records.errors import InfrastructureError, SetupError
from kernel_scientist.records.evaluation import CompileReport
from kernel_scientist.sandbox import confine

BASE_FLAGS = ("-O3", "-march=native", "-fopenmp", "-std=c++20", "-fPIC", "-shared")
REPORT = "3"
"""Version of what a report contains: kept builds with an older one are built again."""
LEAST_BYTES = 1 << 20
"""A disk with less room is full: the compiler's messages had no room either."""


class Built(NamedTuple):
    """Path of the built object (None after an error) and the report."""

    path: Path | None
    report: CompileReport


@functools.cache
def find() -> str:
    """Return the path of g++. Raises SetupError when there is none."""
    path = shutil.which("g++")
    if path is None:
        raise SetupError("no C++ compiler: g++ is not on PATH; install it (Debian, Ubuntu: apt-get install g++)")
    return path


@functools.cache
def version() -> str:
    """Return the compiler's first version line."""
    out = subprocess.run([find(), "--version"], capture_output=True, text=True, timeout=30, check=False)
    return out.stdout.splitlines()[0] if out.stdout else "g++"


@functools.cache
def processor() -> str:
    """Return a digest of the processor's feature flags, on which `-march=native` depends."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    features = next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(features.encode()).hexdigest()[:16]


def key(request: BuildRequest) -> str:
    """Return the digest that names the built object."""
    parts = [request.source, repr(sorted(request.defines.items())), repr(request.flags)]
    parts += [repr(BASE_FLAGS), version(), processor(), REPORT]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def build(request: BuildRequest, timeout_s: float = 60) -> Built:
    """Compile a request, or return the earlier build. Compiler errors are in the report, not an exception."""
    if (bad := flags.forbidden(request.flags)) is not None:
        return Built(None, CompileReport(ok=False, compiler=version(), log=f"flag {bad!r} is not allowed"))
    return kept(key(request), lambda scratch: _compile(request, scratch, timeout_s))


def kept(name: str, make: Callable[[Path], Built]) -> Built:
    """Return the build stored under a name, else build with `make` in an empty folder and store it if it is ok.

    Raises InfrastructureError when the disk is full.
    """
    folder = environment.cache_folder() / "objects"
    try:
        return _kept(folder, name, make)
    except OSError as error:
        if not disk.is_full(error):
            raise
        raise InfrastructureError(f"{str(error.strerror).lower()}: {folder}") from error


def _kept(folder: Path, name: str, make: Callable[[Path], Built]) -> Built:
    folder.mkdir(parents=True, exist_ok=True)
    target, report_file = folder / f"{name}.so", folder / f"{name}.json"
    if target.exists() and report_file.exists():
        report = CompileReport.model_validate_json(report_file.read_text())
        return Built(target, report.model_copy(update={"cached": True}))
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as scratch:
        built = make(Path(scratch))
        if built.path is None:
            return built
        environment.keep(report_file, built.report.model_dump_json())
        built.path.replace(target)
    return Built(target, built.report)


def _compile(request: BuildRequest, scratch: Path, timeout_s: float) -> Built:
    (scratch / "kernel.cpp").write_text(request.source)
    defines = [f"-D{k}={v}" for k, v in request.defines.items()]
    program = [find(), *BASE_FLAGS, *request.flags, *defines, "-o", "kernel.so", "kernel.cpp"]
    built = run(confine.command(program, scratch), scratch / "kernel.so", version(), timeout_s)
    if built.path is None:
        return built
    return Built(built.path, built.report.model_copy(update=disassembly.inspect(built.path)._asdict()))


def run(
    command: list[str],
    out: Path,
    compiler: str,
    timeout_s: float,
    memory_bytes: int = confine.MEMORY_BYTES,
    log_bytes: int = confine.LOG_BYTES,
) -> Built:
    """Run a confined command that writes the shared object `out`; return object and report.

    Raises OSError when the disk is full, which is no fault of the source.
    """
    start = time.monotonic()
    status, log = confine.run(command, out.parent, timeout_s, memory_bytes, log_bytes)
    seconds = round(time.monotonic() - start, 3)
    if status is None:
        log = f"the compiler took longer than {timeout_s:g} s and was stopped\n{log}"
    if status != 0 and (shutil.disk_usage(out.parent).free < LEAST_BYTES or os.strerror(errno.ENOSPC) in log):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if status != 0 or not out.is_file():
        return Built(None, CompileReport(ok=False, compiler=compiler, seconds=seconds, log=log))
    code_bytes = out.stat().st_size
    return Built(out, CompileReport(ok=True, compiler=compiler, seconds=seconds, log=log, code_bytes=code_bytes))


def merged(reports: list[CompileReport], language: str) -> CompileReport:
    """Return one report of all builds of a kernel's file."""
    if not reports:
        return CompileReport(ok=True, compiler="triton" if language == "triton" else "none")
    if len(reports) == 1:
        return reports[0]
    return CompileReport(
        ok=all(r.ok for r in reports),
        compiler=reports[0].compiler,
        seconds=sum(r.seconds for r in reports),
        cached=all(r.cached for r in reports),
        log="\n".join(r.log for r in reports if r.log),
        code_bytes=sum(r.code_bytes or 0 for r in reports),
        hot_loop=max(reports, key=lambda r: r.instructions.get("all", 0)).hot_loop,
        instructions={k: sum(r.instructions.get(k, 0) for r in reports) for r in reports for k in r.instructions},
    )


def headline(log: str) -> str:
    """Return the line of a compiler's log that states the first error."""
    lines = [line for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[0] if lines else "no message")[:300]
