"""Processes that a command has left running."""

from pathlib import Path


def processes_of(lab: Path) -> list[str]:
    """The command lines of all processes with this root folder in their environment."""
    commands: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"KERNEL_SCIENTIST_ROOT={lab}".encode() in environment:
            commands.append(command)
    return commands
