"""A clock that jumps decides on no wait and no deadline: those use the monotonic clock."""

import re
from pathlib import Path

from tests.conftest import ROOT

WALL_CLOCK = re.compile(r"\btime\.time\(\)|\btime\.time_ns\(\)|\bdatetime\.(now|utcnow|today)\(")
ALLOWED = {
    "kernel_scientist/campaign/kernelbot/leaderboard.py": "when a submission was sent is on record for another process",
    "kernel_scientist/evaluation/timing/aa_noise.py": "how old a file is; a jump measures the noise again",
    "kernel_scientist/hardware/measured.py": "how old a file is; a jump measures the peaks again",
    "kernel_scientist/sandbox/device_lock.py": "for how long others have held a device, in words",
    "kernel_scientist/sandbox/device_queue.py": "whether a process has touched its file; a jump passes it by once",
    "kernel_scientist/scientist/llm/failures.py": "a date that an endpoint names, bounded by llm.longest_delay_s",
}
"""Uses of the wall clock that are no time stamps of records."""


def test_waits_do_not_read_the_wall_clock() -> None:
    """A comparison or a sum with the wall clock would be a deadline; a record's time stamp is neither."""
    found = set[str]()
    for folder in ("kernel_scientist", "flows", "tasks"):
        for file in (ROOT / folder).rglob("*.py"):
            for line in file.read_text().splitlines():
                if WALL_CLOCK.search(line) and re.search(r"[<>]|while |\) - |\) \+ | - time\.time", line.split("#")[0]):
                    found.add(str(Path(file).relative_to(ROOT)))
    assert found == set(ALLOWED)
