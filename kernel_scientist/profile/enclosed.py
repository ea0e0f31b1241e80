"""Run a profiler with untrusted code under it: in the enclosure that workers have, with an environment without keys.

Where that is bubblewrap, the profiler is in it too. Elsewhere the subject alone confines itself (see `subject`), as a
worker does, and `keeper` ends what it leaves.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from kernel_scientist.records.errors import StoppedError
from kernel_scientist.sandbox import bubblewrap

POLL_S = 0.05
WORDS = 4000
"""Characters of what was printed that are kept."""
KEPT = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES")
DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def command(program: list[str], folder: Path, device: str, kind: str, readable: tuple[str, ...]) -> list[str]:
    """Return the command that runs `program` in an enclosure (`enclosure.kind`), where it may write to `folder`."""
    if kind != "bubblewrap":
        return [sys.executable, "-P", "-S", "-m", "kernel_scientist.profile.supervisor", *program]
    inside = [*bubblewrap.bubblewrap(device, [path for path in readable if Path(path).exists()]), *program]
    place = inside.index("--chdir")
    inside[place : place + 2] = ["--bind", str(folder), str(folder), "--chdir", str(folder)]
    return inside


def environment(device: str, folder: Path) -> dict[str, str]:
    """Return what a profiler and its subject know of ours: where programs are, and the GPU that is locked."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    gpu = {} if device == "cpu" else {name: os.environ.get(name, "0").split(",")[0] for name in DEVICES}
    homes = dict.fromkeys(("HOME", "TMPDIR", "TRITON_CACHE_DIR"), str(folder))
    package = str(bubblewrap.PACKAGE.parent)
    return {**kept, **gpu, **homes, "LC_ALL": "C", "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}


def run(
    command: list[str], folder: Path, device: str, timeout_s: float, stopped: threading.Event
) -> tuple[int | None, str]:
    """Run a command in `folder`; return its status (None: it took too long) and the end of what it printed.

    Raises StoppedError when `stopped` is set meanwhile.
    """
    with tempfile.TemporaryFile() as log:  # not in the folder: the subject writes there
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(device, folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            status = _waited(process, timeout_s, stopped)
        finally:
            _end(process)
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - WORDS))
        return status, log.read(WORDS).decode(errors="replace").strip()


def _waited(process: subprocess.Popen[bytes], timeout_s: float, stopped: threading.Event) -> int | None:
    deadline = time.monotonic() + timeout_s
    while (status := process.poll()) is None and time.monotonic() < deadline:
        if stopped.wait(POLL_S):
            raise StoppedError("the workshop was closed")
    return status


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group: gently first, so that a keeper can end what has left the group."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
