"""Confine a program that reads untrusted text, such as a compiler: it sees system files and its own folder only.

`command` confines its files, `run` its time, memory and output.

`python -P -S -m kernel_scientist.sandbox.confine PARENT FOLDER READABLE... -- PROGRAM ARGUMENT...` runs the program
under Landlock, without capabilities and with a system-call filter. It ends with PARENT (a process number). All
descendants of the program are killed when it ends or this process gets SIGTERM. Imports only the standard library.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.sandbox import bubblewrap, landlock, lifetime, memory_kills, seccomp

MEMORY_BYTES = 4 << 30
FILE_BYTES = 256 << 20
LOG_BYTES = 20_000
PATIENCE_S = 5
"""Seconds that a process has after SIGTERM to end its children."""
OUT_OF_MEMORY = "the machine ran out of memory during a build, and the system killed processes"
CPU_SHARE = 4
"""CPU seconds of one process per second of the time limit (compilers have few threads)."""


def command(program: list[str], folder: Path, readable: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs `program` confined to `folder`, by Landlock or else by bubblewrap.

    Without either it runs unconfined: `harness.sandbox: auto` refuses such a system, `basic` and `none` do not.
    Only this process may run the command, because the program ends with it. `readable`: files and folders that the
    program may read in addition to the system's; missing ones are ignored.
    """
    if landlock.version():
        run = [sys.executable, "-P", "-S", "-m", "kernel_scientist.sandbox.confine"]
        return [*run, str(os.getpid()), str(folder), *readable, "--", *program]
    if bubblewrap.bubblewrap_works():
        return [*bubblewrap.bubblewrap("cpu", [p for p in readable if Path(p).exists()], str(folder)), *program]
    return program


def patience_s(limit_s: float) -> float:
    """Return the wall time in which a process gets about `limit_s` seconds of a core beside what else runs here."""
    busy = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return limit_s * min(CPU_SHARE, max(1.0, busy))


def run(
    command: list[str], folder: Path, timeout_s: float, memory_bytes: int = MEMORY_BYTES, log_bytes: int = LOG_BYTES
) -> tuple[int | None, str]:
    """Run a command in `folder`, in its own process group, with limits and no environment except PATH.

    Returns its status (None: timeout) and its output without the folder's path. Raises InfrastructureError if it failed
    while the system killed processes for want of memory.

    `timeout_s` is that of a machine with nothing else to do (`patience_s`).
    `memory_bytes` limits the address space, `log_bytes` the output; the rest of the output is dropped.
    """
    kills = memory_kills.count()
    limits = f"ulimit -v {memory_bytes >> 10} && ulimit -f {FILE_BYTES >> 9} && ulimit -t {most_cpu_s(timeout_s)}"
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'{limits} && exec "$@"', "sh", *command],  # limits are set before the command runs
            cwd=folder,
            env={**environment(), "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(patience_s(timeout_s))
        except subprocess.TimeoutExpired:
            status = None
            process.terminate()  # `main` ends children that have left our process group
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # kills its process group too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if status and memory_kills.count() > kills:
            raise InfrastructureError(OUT_OF_MEMORY)
        return status, text(log, folder, log_bytes)


def most_cpu_s(timeout_s: float) -> int:
    """Return the limit of a process's CPU seconds; its children may outlive it."""
    return int(CPU_SHARE * timeout_s) + 1


def environment() -> dict[str, str]:
    """Return the environment of a confined program, apart from the folder for temporary files."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "LOGNAME": "nobody",  # torch.compile names a folder by it, and the list of users is not readable
        "PYTHONPATH": os.pathsep.join((str(bubblewrap.LISTED), bubblewrap.python_path())),
    }


def text(log: BinaryIO, folder: Path, most: int = LOG_BYTES) -> str:
    """Return the beginning of a program's output, without its folder's path."""
    log.seek(0)
    return log.read(most).decode(errors="replace").replace(str(folder) + "/", "")


def enter(interpreter: str, folder: str, readable: Sequence[str]) -> None:
    """Confine this process, a new child, as a program of that interpreter is confined."""
    os.nice(10)  # so that a build does not disturb a timing
    tools = str(Path(interpreter).resolve().parents[1])
    landlock.restrict((*bubblewrap.SYSTEM, *([tools] if tools != "/" else []), *readable), (folder, "/dev/null"))
    seccomp.confine_builder(programs=True)


def main() -> None:
    """Run the program, kill its remaining descendants, and exit with its status."""
    parent, folder, *rest = sys.argv[1:]
    end = rest.index("--")
    sys.exit(lifetime.keep(int(parent), lambda: _become(rest[end + 1 :], folder, rest[:end])))


def _become(program: list[str], folder: str, readable: list[str]) -> None:
    """Confine this process (a new child) and replace it by the program."""
    keeper = os.getppid()
    enter(program[0], folder, readable)
    if os.getppid() == keeper:  # otherwise it has ended, and nobody would end the program
        os.execv(program[0], program)


if __name__ == "__main__":
    main()
