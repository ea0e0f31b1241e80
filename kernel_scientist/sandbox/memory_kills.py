"""How many processes the system has killed because memory ran out: one that ends so says nothing about a kernel.

Our own limits of memory make an allocation fail; they kill nothing.
"""

import contextlib
import re
from pathlib import Path

VMSTAT, CGROUPS, OWN = Path("/proc/vmstat"), Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


def count() -> int:
    """Return a number that rises with every such kill on this machine or in this process's control group."""
    return sum(map(_told, (VMSTAT, *_of_group())))


def _of_group() -> list[Path]:
    """Return the files of this process's control group, of both versions: a container may hide the machine's."""
    found = list[Path]()
    with contextlib.suppress(OSError):
        for line in OWN.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                found.append(CGROUPS / path.lstrip("/") / "memory.events")
            elif "memory" in controllers.split(","):
                found.append(CGROUPS / "memory" / path.lstrip("/") / "memory.oom_control")
    return found


def _told(file: Path) -> int:
    """Return the count in a file; 0 if it says nothing, or is not there."""
    with contextlib.suppress(OSError):
        if told := _COUNT.search(file.read_text()):
            return int(told[1])
    return 0
