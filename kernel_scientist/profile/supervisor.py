"""Runs a program and ends all that it leaves: `python -P -S -m kernel_scientist.profile.supervisor PROGRAM ARGUMENT...`

A profiler starts untrusted code, which may start programs while it compiles; whoever outlives them becomes this
process's child and is killed. Where bubblewrap gives them a process space of their own, that does the same. Imports
only the standard library and the sandbox.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from kernel_scientist.sandbox import seccomp

PATIENCE_S = 10


def main() -> None:
    """Run the program and leave with its status; SIGTERM ends everything at once."""
    seccomp.adopt_orphans()
    seccomp.die_with_parent()
    signal.signal(signal.SIGTERM, _leave)
    status = 1
    try:
        status = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, check=False).returncode
    finally:
        _end_descendants()
    sys.exit(status if status >= 0 else 128 - status)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(143)


def _end_descendants() -> None:
    """Kill children until there are none: what a killed one has started becomes a child in turn."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(child), signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not children:
            return
        time.sleep(0.02)


if __name__ == "__main__":
    main()
