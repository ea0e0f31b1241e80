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
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernel_scientist.hardware import gpu
from kernel_scientist.profile import ncu
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.sandbox import bubblewrap, device_queue

Name = Literal["rocprofv3", "ncu"]
PLACES = ("/opt/rocm/bin", "/usr/local/cuda/bin")
PARAMETERS = Path("/proc/driver/nvidia/params")
NSIGHT = Path("/opt/nvidia/nsight-compute")
"""Folder in which CUDA's packages install the programs that their `ncu` starts."""
PACKAGES = {"rocprofv3": "rocprofiler-sdk, part of ROCm", "ncu": "Nsight Compute, part of CUDA's toolkit"}
POLL_S = 0.05
OUTPUT = 4000
"""Bytes kept of the output's end."""
KEPT = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Profiler:
    """A tool, and the files that it reads besides those of workers."""

    name: Name
    program: str
    readable: tuple[str, ...]


def find(vendor: str) -> Profiler | str:
    """Return the profiler for `rocm` or `cuda`, or the reason (a sentence) why there is none."""
    name: Name = "rocprofv3" if vendor == "rocm" else "ncu"
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


def environment(device: str, folder: Path) -> dict[str, str]:
    """Return the environment of a profiler: paths of programs, and the GPU that is locked."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = {} if device == "cpu" else gpu.only_first(os.environ)
    homes = dict.fromkeys(("HOME", "TMPDIR", "TRITON_CACHE_DIR"), str(folder))
    python = {"PYTHONPATH": bubblewrap.python_path(), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **own, **homes, "LC_ALL": "C", **python}


def run(
    command: list[str], folder: Path, device: str, timeout_s: float, stopped: threading.Event
) -> tuple[int | None, str]:
    """Run a command in `folder`; return its status (None: timeout) and the end of its output.

    Raises StoppedError if `stopped` is set while the command runs.
    """
    with tempfile.TemporaryFile() as log:  # not in the folder: the target process writes there
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(device, folder),
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
