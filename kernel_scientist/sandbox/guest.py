"""A guest: a program that a user names, such as a coding agent. It uses the network and reads this machine, but writes
only where it is allowed to, and does not see what is hidden.

`command` runs it under bubblewrap, or else Landlock. Whichever it is, the guest and all that it has started end with
the process that runs the command, or when that sends SIGTERM. In bubblewrap it has a /tmp of its own, and no GPU.

`main` is run by that command: PARENT (a process number), RULES (JSON; null: no Landlock), PROGRAM, ARGUMENT...
Imports only the standard library.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_scientist.sandbox import bubblewrap, landlock, lifetime, seccomp

DEVICES = (*bubblewrap.DEVICES, "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm")
NONE = "this system has neither bubblewrap nor Landlock"
TMP = Path("/tmp")


@dataclass(frozen=True)
class Walls:
    """What a guest may do with files: all paths are absolute and real (no links)."""

    folder: str
    """Its working folder."""
    writable: tuple[str, ...]
    """Files and folders that it may write; what is hidden in them stays hidden."""
    hidden: tuple[str, ...]
    """Files and folders that it cannot read."""


def kind() -> str:
    """Return what encloses guests on this system: bubblewrap, Landlock, or nothing (an empty text)."""
    if bubblewrap.bubblewrap_works():
        return "bubblewrap"
    return "Landlock" if landlock.version() else ""


def command(program: Sequence[str], walls: Walls) -> list[str]:
    """Return the command that runs a program as a guest; only this process may run it.

    On a system with neither bubblewrap nor Landlock its files are not protected (see `kind`).
    """
    chosen = kind()
    rules = json.dumps(asdict(walls)) if chosen == "Landlock" else "null"
    start = "import sys; sys.path.insert(0, sys.argv.pop(1)); from kernel_scientist.sandbox import guest; guest.main()"
    keeper = [sys.executable, "-I", "-S", "-c", start, str(bubblewrap.PACKAGE.parent), str(os.getpid()), rules]
    return [*keeper, *(_namespaces(program, walls) if chosen == "bubblewrap" else []), *program]


def _namespaces(program: Sequence[str], walls: Walls) -> list[str]:
    """Return the beginning of a command: a program's namespaces, by bubblewrap."""
    command = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"]
    command += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    command += ["--size", str(bubblewrap.TMP_BYTES), "--tmpfs", str(TMP)]
    for path in (word for word in program if Path(word).is_relative_to(TMP) and word != str(TMP)):
        command += ["--ro-bind-try", path, path]
    for path in walls.writable:
        command += ["--bind-try", path, path]
    for path in map(Path, walls.hidden):
        if path.is_dir():
            command += ["--tmpfs", str(path), "--remount-ro", str(path)]
        elif path.exists():
            command += ["--ro-bind", os.devnull, str(path)]
    return [*command, "--bind", walls.folder, walls.folder, "--chdir", walls.folder, "--"]


def beside(path: Path, hidden: Iterable[Path]) -> list[Path]:
    """Return paths below `path`, or itself, that together hold all that is not hidden: Landlock has no exceptions.

    A folder in which something is hidden is not among them, so it cannot be listed; links are left out.
    """
    hidden = [*hidden]
    if any(path.is_relative_to(one) for one in hidden):
        return []
    inside = [one for one in hidden if one.is_relative_to(path)]
    if not inside:
        return [path]
    try:
        entries = sorted(entry.name for entry in os.scandir(path) if not entry.is_symlink())
    except OSError:
        return []
    return [found for name in entries for found in beside(path / name, inside)]


def main() -> None:
    """Run the program behind its walls, kill its remaining descendants, and exit with its status."""
    parent, rules, *program = sys.argv[1:]
    walls = Walls(**given) if (given := json.loads(rules)) else None
    sys.exit(lifetime.keep(int(parent), lambda: _become(program, walls)))


def _become(program: Sequence[str], walls: Walls | None) -> None:
    """Confine this process (a new child), if there are walls, and replace it by the program."""
    keeper = os.getppid()
    if walls is not None:
        hidden = [Path(one) for one in walls.hidden]
        writable = [str(found) for one in walls.writable for found in beside(Path(one), hidden)]
        readable = map(str, beside(Path("/"), hidden))
        landlock.restrict(readable, (walls.folder, *writable, *DEVICES), network=True)
        seccomp.drop_capabilities()
    if os.getppid() == keeper:  # otherwise it has ended, and nobody would end the program
        os.execvp(program[0], [*program])
