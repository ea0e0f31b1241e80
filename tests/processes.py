"""Processes that a command has left running."""

from collections.abc import Callable
from pathlib import Path

from kernel_scientist.workers.worker_pool import FORK_SERVER


def processes_of(lab: Path) -> list[str]:
    """The command lines of all processes with this root folder in their environment."""
    return _commands(lambda environment, _: f"KERNEL_SCIENTIST_ROOT={lab}" in environment)


def fork_servers(cache: Path) -> list[str]:
    """The command lines of all fork servers with code from this cache; their environment tells nothing."""
    return _commands(lambda _, command: FORK_SERVER in command and str(cache) in command)


def _commands(chosen: Callable[[str, str], bool]) -> list[str]:
    commands: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().decode(errors="replace")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if chosen(environment, command):
            commands.append(command)
    return commands
