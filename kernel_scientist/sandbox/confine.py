"""Run a program that reads untrusted text, such as a compiler: it sees the system's files and one folder of its own.

`python -P -S -m kernel_scientist.sandbox.confine PARENT FOLDER READABLE... -- PROGRAM ARGUMENT...` ends with its parent
(a process number). It runs the program under Landlock, without capabilities and with a filter of system calls. All that
the program starts is killed when the program ends or this process gets SIGTERM. Imports only the standard library.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

from kernel_scientist.sandbox import bubblewrap, landlock, lifetime, seccomp


def command(program: list[str], folder: Path, readable: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs `program` confined to `folder`, by Landlock or else by bubblewrap.

    This process must run it: the program ends with this process. `readable`: files and folders that it may read as well
    as the system's; those that do not exist are ignored.
    """
    if landlock.version():
        run = [sys.executable, "-P", "-S", "-m", "kernel_scientist.sandbox.confine"]
        return [*run, str(os.getpid()), str(folder), *readable, "--", *program]
    if bubblewrap.bubblewrap_works():
        return [*bubblewrap.bubblewrap("cpu", [p for p in readable if Path(p).exists()], str(folder)), *program]
    return program


def main() -> None:
    """Run the program; kill all that it leaves and exit with its status."""
    parent, folder, *rest = sys.argv[1:]
    signal.signal(signal.SIGTERM, _terminate)
    lifetime.die_with_parent(signal.SIGTERM)
    if os.getppid() != int(parent):  # it was gone before
        sys.exit(1)
    lifetime.adopt_orphans()
    end, status = rest.index("--"), 1
    try:
        if (child := os.fork()) == 0:
            try:
                _become(rest[end + 1 :], folder, rest[:end])
            finally:
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_descendants()
    sys.exit(status if status >= 0 else 128 - status)


def _terminate(*_: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _become(program: list[str], folder: str, readable: list[str]) -> None:
    """Confine this process, a fresh child, and become the program."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    keeper = os.getppid()
    os.nice(10)  # so that a build does not disturb a timing
    tools = str(Path(program[0]).resolve().parents[1])
    landlock.restrict((*bubblewrap.SYSTEM, *([tools] if tools != "/" else []), *readable), (folder, "/dev/null"))
    seccomp.confine_builder(programs=True)
    if os.getppid() == keeper:  # else it was gone before this process's life was bound to it
        os.execv(program[0], program)


def _end_descendants() -> None:
    """Kill all descendants; those whose parents have ended become this process's children, and it waits for each."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with contextlib.suppress(ChildProcessError):
        while True:
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
            os.waitpid(-1, 0)


if __name__ == "__main__":
    main()
