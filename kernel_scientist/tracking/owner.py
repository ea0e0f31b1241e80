"""Tags of a campaign's MLflow run: the process that runs the campaign, and whose it is, on a store that several share.

If that process is gone, the next command on this host sets the run to KILLED.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

TAG, BELONGS = "owner", "belongs_to"
UNKNOWN = "an owner who is not recorded"
"""Of campaigns of older versions."""


def this_process() -> str:
    """Return host, process id and the process's start: an id alone is soon another process's."""
    return f"{socket.gethostname()} {os.getpid()} {_start(os.getpid())}"


def words(tags: Mapping[str, str]) -> str:
    """Return whose a campaign is and on which host it runs or ran."""
    process = tags.get(TAG, "").split()
    return f"{tags.get(BELONGS, UNKNOWN)}" + (f", on host {process[0]}" if process else "")


def is_gone(owner: str | None) -> bool:
    """Whether the process has ended. False if that is not known: it ran on another host, or left no tag."""
    if not owner:
        return False
    host, pid, start = owner.split()
    return host == socket.gethostname() and start != _start(int(pid))


def other_process(owner: str | None) -> int | None:
    """Return the id of the owner if it is another process of this host that lives."""
    host, pid, start = owner.split() if owner else ("", "0", "")
    alive = host == socket.gethostname() and start == _start(int(pid))
    return int(pid) if alive and int(pid) != os.getpid() else None


def _start(pid: int) -> str:
    """Return when a process started, in ticks since boot, with the boot's id; empty if it has ended."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else f"{boot}/{fields[18]}"
    except OSError:
        return ""
