"""Run a program that reads untrusted text, a compiler, so that it sees the system's files and one folder of its own.

`python -P -S -m kernel_scientist.sandbox.confine PARENT FOLDER READABLE... -- PROGRAM ARGUMENT...`: it binds its life
to that of its parent (a process's number) and runs the program under Landlock, without capabilities and with a filter
of system calls. Whatever the program starts ends when it does, or when this process gets SIGTERM: not even
a session of its own saves it. Imports only the standard library.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

from kernel_scientist.sandbox import bubblewrap, landlock, seccomp


def command(program: list[str], folder: Path, readable: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs `program` confined to `folder`, by what this system has.

    It is this process's to run: the program ends with it, however it ends.

    `readable`: files and folders that it may read besides the system's; those that do not exist are passed over.
    """
    if landlock.version():
        run = [sys.executable, "-P", "-S", "-m", "kernel_scientist.sandbox.confine"]
        return [*run, str(os.getpid()), str(folder), *readable, "--", *program]
    if bubblewrap.bubblewrap_works():
        inside = [*bubblewrap.bubblewrap("cpu", [path for path in readable if Path(path).exists()]), *program]
        inside[inside.index("--chdir") : inside.index("--")] = [
            "--bind",
            str(folder),
            str(folder),
            "--chdir",
            str(folder),
        ]
        return inside
    return program


def main() -> None:
    """Run the program; end with its status, and with nothing of it left."""
    parent, folder, *rest = sys.argv[1:]
    signal.signal(signal.SIGTERM, _told_to_end)
    seccomp.end_with_parent(signal.SIGTERM)
    if os.getppid() != int(parent):  # it was gone before
        sys.exit(1)
    seccomp.adopt_orphans()
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


def _told_to_end(*_: object) -> None:
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
    """Kill all that is left. Whose parents have ended become this process's own children, and it waits for each."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with contextlib.suppress(ChildProcessError):
        while True:
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
            os.waitpid(-1, 0)


if __name__ == "__main__":
    main()
