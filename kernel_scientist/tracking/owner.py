"""The process that runs a campaign, as a tag of its MLflow run: after its death the run is not RUNNING any more."""

import os
import socket
from pathlib import Path

TAG = "owner"


def this_process() -> str:
    """Return host, process id and the process's start: an id alone is soon another process's."""
    return f"{socket.gethostname()} {os.getpid()} {_start(os.getpid())}"


def is_gone(owner: str | None) -> bool:
    """Whether the process has ended. False if that is not known: it ran on another host, or left no tag."""
    if not owner:
        return False
    host, pid, start = owner.split()
    return host == socket.gethostname() and start != _start(int(pid))


def _start(pid: int) -> str:
    """Return when a process started, in ticks since boot, with the boot's id; empty if there is no such process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[19]}"
    except OSError:
        return ""
