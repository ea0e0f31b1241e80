"""Run a program that reads untrusted text, a compiler, so that it sees the system's files and one folder of its own.

`python -P -S -m kernel_scientist.harness.confine PARENT FOLDER READABLE... -- PROGRAM ARGUMENT...`: it binds its life
to that of its parent (a process's number), puts itself under Landlock, and becomes the program.
Imports only the standard library.
"""

import os
import sys
from pathlib import Path

from kernel_scientist.harness import enclosure, landlock, sandbox


def command(program: list[str], folder: Path, readable: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs `program` confined to `folder`, by what this system has.

    It is this process's to run: the program ends with it, however it ends.

    `readable`: files and folders that it may read besides the system's; those that do not exist are passed over.
    """
    if landlock.version():
        run = [sys.executable, "-P", "-S", "-m", "kernel_scientist.harness.confine"]
        return [*run, str(os.getpid()), str(folder), *readable, "--", *program]
    if enclosure.bubblewrap_works():
        inside = [*enclosure.bubblewrap("cpu", [path for path in readable if Path(path).exists()]), *program]
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
    """Confine this process and become the program."""
    parent, folder, *rest = sys.argv[1:]
    sandbox.die_with_parent()
    if os.getppid() != int(parent):  # it was gone before
        sys.exit(1)
    end = rest.index("--")
    readable, program = rest[:end], rest[end + 1 :]
    tools = str(Path(program[0]).resolve().parents[1])
    landlock.restrict((*enclosure.SYSTEM, *([tools] if tools != "/" else []), *readable), (folder, "/dev/null"))
    os.nice(10)  # so that a build does not disturb a timing
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
