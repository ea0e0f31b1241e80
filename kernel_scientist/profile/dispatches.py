"""Tables of profilers: one row or more per execution of a kernel, and the case to which each execution belongs.

A table is written next to untrusted code or by it: any text becomes a list or a `CountingError`.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernel_scientist.hardware.counter_figures import combined

MARKER = "spin_kernel"
"""The kernel of `torch.cuda._sleep`, which the target process launches before and after the call on each case."""
LARGEST = 1e24
NAME = 120
"""Characters kept of a kernel's name."""


class CountingError(Exception):
    """Nothing could be counted; the message gives the reason."""


@dataclass
class Dispatch:
    """One execution of one kernel."""

    number: int
    kernel: str
    counts: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Group:
    """All executions of one kernel in one case."""

    case: str
    kernel: str
    dispatches: int
    counts: dict[str, float]


def rows(text: str, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the complete rows of comma-separated values. Raises CountingError, also if a column is missing."""
    try:
        table = csv.DictReader(io.StringIO(text, newline=""))
        if missing := [column for column in columns if column not in (table.fieldnames or ())]:
            raise CountingError(f"the profiler's table has no column {', '.join(missing)}")
        yield from (row for row in table if None not in row and None not in row.values())
    except csv.Error as error:
        raise CountingError(f"the profiler's table cannot be read: {error}") from error


def dispatch(number: str, kernel: str) -> Dispatch:
    """Return an execution without counts. Raises CountingError if `number` is not a number.

    The name is shortened and loses its arguments, because a submission can choose any name.
    """
    if not re.fullmatch(r"[0-9]{1,18}", number):
        raise CountingError(f"the profiler's table has a dispatch without a number: {number[:40]!r}")
    plain = kernel.replace("(anonymous namespace)::", "").split("(")[0].removeprefix("void ").strip()
    return Dispatch(int(number), re.sub(r"[^\w<>:,.~+-]+", " ", plain, flags=re.ASCII)[:NAME].strip() or "?")


def count(text: str) -> float | None:
    """Return a count; commas may separate its thousands. None for any other text."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if 0 <= value <= LARGEST else None


def grouped(dispatches: Sequence[Dispatch], cases: Sequence[str]) -> list[Group]:
    """Return the counts between each pair of markers, by case and kernel.

    Raises CountingError unless there are two markers per case: the calls cannot be assigned to cases otherwise.
    """
    ordered = sorted(dispatches, key=lambda d: d.number)
    marks = [i for i, d in enumerate(ordered) if MARKER in d.kernel]
    if len(marks) != 2 * len(cases):
        raise CountingError(f"the profiler's table has {len(marks)} markers for {len(cases)} cases; each needs two")
    found: list[Group] = []
    for case, start, end in zip(cases, marks[::2], marks[1::2], strict=True):
        by_kernel: dict[str, list[Mapping[str, float]]] = {}
        for one in ordered[start + 1 : end]:
            by_kernel.setdefault(one.kernel, []).append(one.counts)
        found += [Group(case, kernel, len(counts), combined(counts)) for kernel, counts in by_kernel.items()]
    return found
