"""A compiler's process: untrusted text is read in its own process group, with limits and an environment of PATH alone.

`confine` decides which files it sees.
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
"""How long a process that gets SIGTERM may take to end its children."""
CPU_SHARE = 4
"""CPU seconds that one process may take, per second of the time limit: compilers have few threads."""


def run(
    command: list[str], folder: Path, timeout_s: float, memory_bytes: int = MEMORY_BYTES, log_bytes: int = LOG_BYTES
) -> tuple[int | None, str]:
    """Run a command in `folder`; return its status (None: timed out) and what it printed, capped, without the path.

    memory_bytes: of address space. log_bytes: of what it prints; the rest is lost.
    """
    most = int(CPU_SHARE * timeout_s) + 1  # its children do not always end with it
    limits = f"ulimit -v {memory_bytes >> 10} && ulimit -f {FILE_BYTES >> 9} && ulimit -t {most}"
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'{limits} && exec "$@"', "sh", *command],  # before it can start anything
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            status = None
            process.terminate()  # `confine` ends children that have left our process group
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # whatever it started goes with it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        text = log.read(log_bytes).decode(errors="replace")
    return status, text.replace(str(folder) + "/", "")


def _environment(folder: Path) -> dict[str, str]:
    given = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TMPDIR": str(folder)}
    return {**given, "PYTHONPATH": str(bubblewrap.PACKAGE.parent)}
