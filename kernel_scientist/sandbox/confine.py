"""Confine a program that reads untrusted text, such as a compiler: it sees system files and its own folder only.

`python -P -S -m kernel_scientist.sandbox.confine PARENT FOLDER READABLE... -- PROGRAM ARGUMENT...` runs the program
under Landlock, without capabilities and with a system-call filter. It ends with PARENT (a process number). All
descendants of the program are killed when it ends or this process gets SIGTERM. Imports only the standard library.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

from kernel_scientist.sandbox import bubblewrap, landlock, lifetime, seccomp


def command(program: list[str], folder: Path, readable: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs `program` confined to `folder`, by Landlock or else by bubblewrap.

    Only this process may run the command, because the program ends with it. `readable`: files and folders that the
    program may read in addition to the system's; missing ones are ignored.
    """
    if landlock.version():
        run = [sys.executable, "-P", "-S", "-m", "kernel_scientist.sandbox.confine"]
        return [*run, str(os.getpid()), str(folder), *readable, "--", *program]
    if bubblewrap.bubblewrap_works():
        return [*bubblewrap.bubblewrap("cpu", [p for p in readable if Path(p).exists()], str(folder)), *program]
    return program


def main() -> None:
    """Run the program, kill its remaining descendants, and exit with its status."""
    parent, folder, *rest = sys.argv[1:]
    signal.signal(signal.SIGTERM, _terminate)
    lifetime.die_with_parent(signal.SIGTERM)
    if os.getppid() != int(parent):  # the parent has already ended
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
    """Confine this process (a new child) and replace it by the program."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    keeper = os.getppid()
    os.nice(10)  # so that a build does not disturb a timing
    tools = str(Path(program[0]).resolve().parents[1])
    landlock.restrict((*bubblewrap.SYSTEM, *([tools] if tools != "/" else []), *readable), (folder, "/dev/null"))
    seccomp.confine_builder(programs=True)
    if os.getppid() == keeper:  # otherwise the parent ended before `die_with_parent`
        os.execv(program[0], program)


def _end_descendants() -> None:
    """Kill all descendants and wait for each. Orphans among them have become children of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with contextlib.suppress(ChildProcessError):
        while True:
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
            os.waitpid(-1, 0)


if __name__ == "__main__":
    main()
