"""The lifetime of a process: it ends with its parent, and it adopts orphaned descendants.

`python -m kernel_scientist.sandbox.lifetime COMMAND [ARGUMENT...]` runs a command that ends with the process that
started it. Imports only the standard library.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
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


def main() -> None:
    """Replace this process by the command, which ends with the parent."""
    parent = os.getppid()
    die_with_parent()
    if os.getppid() != parent:
        sys.exit(1)  # the parent ended before die_with_parent
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
