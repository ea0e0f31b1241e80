"""Linux' perf: its commands and what it prints. The sampling clock is one of software, which virtual machines have too.

Sources: perf-record(1), perf-stat(1), perf-script(1) of Linux 6.1. What it prints comes from next to untrusted
code: any text becomes samples, or fewer of them.
"""

import re
from pathlib import Path
from typing import NamedTuple

SAMPLES_A_SECOND = 1999
"""Of a thread's CPU time; a prime, so that it keeps no step with what a kernel repeats."""
CLOCK = "cpu-clock"
DATA, CONTROL, ACKNOWLEDGED = "perf.data", "control", "acknowledged"
"""Files in the target process's folder: the samples, and the pipes by which it turns the events on and off."""
EVENTS = ("cycles", "instructions", "cache-misses", "branch-misses")
"""Hardware events; the third is one of the last-level cache."""
_MAPPING = re.compile(
    r"PERF_RECORD_MMAP2? .*?\[0x([0-9a-f]{1,16})\(0x([0-9a-f]{1,16})\) @ (?:0x)?([0-9a-f]{1,16}) .*?\]: \S+ (\S.*)$"
)
_SAMPLE = re.compile(rf"^\s*(\d{{1,10}})\s+{CLOCK}(:\w+)?:\s+([0-9a-f]{{1,16}})(?:\s+\((.*)\))?\s*$")
_COUNT = re.compile(r"^(\d{1,20}),[^,]*,([\w-]+)(?::\w+)?,")


class MappedPart(NamedTuple):
    """A part of a file that was mapped to be executed."""

    start: int
    size: int
    offset: int
    """Of the part in the file."""
    path: str


class PerfSample(NamedTuple):
    """A thread that was executing code at an address of a file (or of the system, in brackets)."""

    thread: int
    address: int
    path: str


class PerfSamples(NamedTuple):
    """What `perf script` printed."""

    samples: list[PerfSample]
    mappings: list[MappedPart]
    of_system: bool
    """Whether samples were taken in the operating system as well."""


def record(tool: str, folder: Path, program: list[str]) -> list[str]:
    """Return the command that samples a program's threads while its target process has turned that on."""
    return [tool, "record", "-e", CLOCK, "-F", str(SAMPLES_A_SECOND), *_controlled(folder), "-B", "-N", "-q",
            "-o", str(folder / DATA), "--", *program]  # fmt: skip


def count(tool: str, folder: Path, events: tuple[str, ...], table: Path, program: list[str]) -> list[str]:
    """Return the command that counts hardware events of a program in the same way."""
    return [*_stat(tool, events, table), *_controlled(folder), "--", *program]


def try_record(tool: str) -> list[str]:
    """Return the command of an attempt to sample."""
    return [tool, "record", "-e", CLOCK, "-D", "-1", "-B", "-N", "-o", "tried", "--", "true"]


def try_count(tool: str, table: Path) -> list[str]:
    """Return the command of an attempt to count hardware events."""
    return [*_stat(tool, EVENTS, table), "--", "true"]


def script(tool: str) -> list[str]:
    """Return the command that prints the samples in its folder, without looking at the files that they lie in."""
    return [tool, "script", "-f", "-i", DATA, "-F", "tid,event,ip,dso", "--show-mmap-events"]


def read(text: str) -> PerfSamples:
    """Return the samples and mappings in what `perf script` printed; other lines say nothing."""
    samples, mappings, of_system = list[PerfSample](), list[MappedPart](), False
    for line in text.splitlines():
        if found := _MAPPING.search(line):
            start, size, offset = (int(number, 16) for number in found.groups()[:3])
            mappings.append(MappedPart(start, size, offset, found[4]))
        elif found := _SAMPLE.match(line):
            samples.append(PerfSample(int(found[1]), int(found[3], 16), found[4] or ""))
            of_system |= found[2] is None
    return PerfSamples(samples, mappings, of_system)


def counts(text: str) -> dict[str, int]:
    """Return the counts in a table of `perf stat`, by event; what is `<not supported>` or `<not counted>` is absent."""
    found = (_COUNT.match(line) for line in text.splitlines())
    return {match[2]: int(match[1]) for match in found if match}


def figures(counted: dict[str, int]) -> dict[str, float]:
    """Return ratios of counts (`records.sampled.UNITS`): absolute counts would tell the size of the case."""
    instructions, cycles = counted.get("instructions", 0), counted.get("cycles", 0)
    if not instructions:
        return {}
    per_cycle = {"instructions_per_cycle": instructions / cycles} if cycles else {}
    misses = {"cache_misses": "cache-misses", "branch_misses": "branch-misses"}
    return per_cycle | {
        name: 1000 * counted[event] / instructions for name, event in misses.items() if event in counted
    }


def _stat(tool: str, events: tuple[str, ...], table: Path) -> list[str]:
    return [tool, "stat", "-x", ",", "-o", str(table), "-e", ",".join(f"{event}:u" for event in events)]


def _controlled(folder: Path) -> list[str]:
    return ["-D", "-1", "--control", f"fifo:{folder / CONTROL},{folder / ACKNOWLEDGED}"]
