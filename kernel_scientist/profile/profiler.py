"""The profiler of this machine, or the reason why there is none; runs it with untrusted code under it.

It runs in an environment without keys. With bubblewrap the profiler is in the namespaces, too. Without it only the
target process is confined (see `target_process`).
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernel_scientist.hardware import gpu
from kernel_scientist.profile import ncu
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.sandbox import bubblewrap, device_queue

Name = Literal["rocprofv3", "ncu", "perf"]
NAMES: dict[str, Name] = {"rocm": "rocprofv3", "cuda": "ncu", "cpu": "perf"}
"""The profilers by vendor of the GPU, or `cpu`."""
PLACES = ("/opt/rocm/bin", "/usr/local/cuda/bin")
PARAMETERS = Path("/proc/driver/nvidia/params")
NSIGHT = Path("/opt/nvidia/nsight-compute")
"""Folder in which CUDA's packages install the programs that their `ncu` starts."""
PACKAGES = {
    "rocprofv3": "rocprofiler-sdk, part of ROCm",
    "ncu": "Nsight Compute, part of CUDA's toolkit",
    "perf": "linux-perf (Debian) or linux-tools (Ubuntu)",
}
POLL_S = 0.05
OUTPUT = 4000
"""Bytes kept of the output's end."""
NONE: Mapping[str, str] = {}
KEPT = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Profiler:
    """A tool, and the files that it reads besides those of workers."""

    name: Name
    program: str
    readable: tuple[str, ...]


def find(vendor: str) -> Profiler | str:
    """Return the profiler for `rocm`, `cuda` or `cpu`, or the reason (a sentence) why there is none."""
    name = NAMES[vendor]
    program = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *PLACES)))
    if program is None:
        return f"no {name}: it is neither on PATH nor in {' or '.join(PLACES)}; install {PACKAGES[name]}"
    if name == "ncu":
        with contextlib.suppress(OSError):
            if ncu.forbidden(PARAMETERS.read_text()):  # also for root: the target process has no capabilities
                return ncu.FORBIDDEN
    readable = (str(Path(program).resolve().parents[1]), *([str(NSIGHT)] if name == "ncu" else []))
    return Profiler(name, program, tuple(path for path in readable if path != "/"))


def command(program: list[str], folder: Path, device: str, namespaces: bool, readable: tuple[str, ...]) -> list[str]:
    """Return the command that runs `program`, optionally in namespaces. It may write to `folder` and ends with us."""
    if not namespaces:
        return [sys.executable, "-P", "-S", "-m", "kernel_scientist.sandbox.lifetime", *program]
    files = [path for path in readable if Path(path).exists()]
    return [*bubblewrap.bubblewrap(device, files, str(folder)), *program]


def environment(device: str, folder: Path, variables: Mapping[str, str] = NONE) -> dict[str, str]:
    """Return the environment of a profiler: paths of programs, and the GPU that is locked; and `variables`."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = {} if device == "cpu" else gpu.only_first(os.environ)
    homes = dict.fromkeys(("HOME", "TMPDIR", "TRITON_CACHE_DIR"), str(folder))
    python = {"PYTHONPATH": bubblewrap.python_path(), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **own, **homes, "LC_ALL": "C", **python, **variables}


def run(
    command: list[str],
    folder: Path,
    device: str,
    timeout_s: float,
    stopped: threading.Event | None = None,
    variables: Mapping[str, str] = NONE,
) -> tuple[int | None, str]:
    """Run a command in `folder`; return its status (None: timeout) and the end of its output.

    `variables`: of its environment, besides the usual ones. Raises StoppedError if `stopped` is set meanwhile.
    """
    stopped = stopped or threading.Event()
    with tempfile.TemporaryFile() as log:  # not in the folder: the target process writes there
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(device, folder, variables),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        end = time.monotonic() + timeout_s
        try:
            while (status := process.poll()) is None and time.monotonic() < end:
                device_queue.progressed()
                if stopped.wait(POLL_S):
                    raise StoppedError("the worker pool was closed")
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(max(0, log.seek(0, os.SEEK_END) - OUTPUT))
        return status, log.read().decode(errors="replace").strip()


def failure(tool: Profiler, status: int | None, output: str) -> str:
    """Return a sentence on how a run ended, with the last line of its output."""
    if status is None:
        return f"{tool.name} took longer than harness.counters_timeout_s"
    last = ([line.strip() for line in output.splitlines() if line.strip()] or [""])[-1][:200]
    return f"{tool.name} ended with status {status}{f': {last}' if last else ''}"
