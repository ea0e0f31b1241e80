"""A compiler's process, which reads untrusted text: own process group, limits, and no environment except PATH.

`confine` restricts its files.
"""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from kernel_scientist.sandbox import bubblewrap

MEMORY_BYTES = 4 << 30
FILE_BYTES = 256 << 20
LOG_BYTES = 20_000
PATIENCE_S = 5
"""Seconds that a process has after SIGTERM to end its children."""
CPU_SHARE = 4
"""CPU seconds of one process per second of the time limit (compilers have few threads)."""


def patience_s(limit_s: float) -> float:
    """Return the wall time in which a process gets about `limit_s` seconds of a core beside what else runs here."""
    busy = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return limit_s * min(CPU_SHARE, max(1.0, busy))


def run(
    command: list[str], folder: Path, timeout_s: float, memory_bytes: int = MEMORY_BYTES, log_bytes: int = LOG_BYTES
) -> tuple[int | None, str]:
    """Run a command in `folder`; return its status (None: timeout) and its output without the folder's path.

    `timeout_s` is that of a machine with nothing else to do (`patience_s`).
    `memory_bytes` limits the address space, `log_bytes` the output; the rest of the output is dropped.
    """
    most = int(CPU_SHARE * timeout_s) + 1  # its children may outlive it
    limits = f"ulimit -v {memory_bytes >> 10} && ulimit -f {FILE_BYTES >> 9} && ulimit -t {most}"
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'{limits} && exec "$@"', "sh", *command],  # limits are set before the command runs
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(patience_s(timeout_s))
        except subprocess.TimeoutExpired:
            status = None
            process.terminate()  # `confine` ends children that have left our process group
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # kills its process group too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        text = log.read(log_bytes).decode(errors="replace")
    return status, text.replace(str(folder) + "/", "")


def _environment(folder: Path) -> dict[str, str]:
    given = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TMPDIR": str(folder)}
    return {**given, "PYTHONPATH": str(bubblewrap.PACKAGE.parent)}
