"""The lifetime of a process: it ends with its parent, and it adopts orphaned descendants.

`python -m kernel_scientist.sandbox.lifetime [--whole] COMMAND [ARGUMENT...]` runs a command that ends with the process
that started it, with `--whole` together with all its descendants. Imports only the standard library.
"""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
WHOLE = "--whole"
_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Call prctl(2). Raises OSError if it fails."""
    if _libc.prctl(option, ctypes.c_ulong(value), None, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) refused")


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when its parent dies."""
    prctl(PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Ask the kernel to make this process the parent of all descendants whose own parents have ended."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def children() -> list[int]:
    """Return the children of this process's main thread, adopted orphans among them."""
    return [int(number) for number in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def keep(parent: int, become: Callable[[], None]) -> int:
    """Run a program and return its status as a shell does (128 + the number of a signal); then nothing of it is left.

    `become` replaces a new child of this process by the program. All its descendants are killed when it ends, when this
    process gets SIGTERM, or when `parent`, the process that started this one, ends.
    """
    signal.signal(signal.SIGTERM, _terminate)
    die_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # the parent has already ended
        sys.exit(1)
    adopt_orphans()
    status, keeper = 1, os.getpid()
    try:
        if (child := os.fork()) == 0:
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                if os.getppid() == keeper:
                    become()
            except OSError as error:
                os.write(2, f"the program cannot be started: {error}\n".encode(errors="replace"))
            finally:
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_descendants()
    return status if status >= 0 else 128 - status


def _terminate(*_: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _end_descendants() -> None:
    """Kill all descendants and wait for each. Orphans among them have become children of this process."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for child in children():
                os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def main() -> None:
    """Replace this process by the command, which ends with the parent; with `--whole` run it and see to its end."""
    parent, command = os.getppid(), sys.argv[1:]
    if command[0] == WHOLE:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the command's, which ends in its own way
        sys.exit(keep(parent, lambda: _interruptible(command[1:])))
    die_with_parent()
    if os.getppid() != parent:
        sys.exit(1)  # the parent ended before die_with_parent
    os.execvp(command[0], command)


def _interruptible(command: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
