"""What a profiler's table holds: one kernel's execution after the other, and to which case each belongs.

A table is written beside untrusted code, or by it: any text must become a list, or a `CountingError`.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MARKER = "spin_kernel"
"""What `torch.cuda._sleep` launches: the subject does so before and after the call of each case."""
MOST_ROWS = 1 << 20
LARGEST = 1e24
NAME = 120
"""Characters kept of a kernel's name."""
SHARES = (".pct", ".ratio", "pct_of_peak_sustained_active", "Percent")
"""Ends of the names of what is a share already: of several dispatches the mean is taken, not the sum."""


class CountingError(Exception):
    """Nothing could be counted; the message says why in a sentence."""


@dataclass
class Dispatch:
    """One execution of one kernel."""

    order: int
    kernel: str
    counts: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Group:
    """All executions of one kernel in one case."""

    case: str
    kernel: str
    dispatches: int
    counts: dict[str, float]


def rows(text: str) -> Iterator[list[str]]:
    """Yield the rows of comma-separated values. Raises CountingError."""
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text, newline=""))):
            if number >= MOST_ROWS:
                raise CountingError(f"its table has more than {MOST_ROWS} rows")
            yield row
    except csv.Error as error:
        raise CountingError(f"its table cannot be read: {error}") from error


def number(text: str) -> float | None:
    """Return a count, of which thousands may be parted by commas; None for anything else."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= LARGEST else None


def whole(text: str) -> int:
    """Return a dispatch's number. Raises CountingError."""
    if not re.fullmatch(r"[0-9]{1,18}", text.strip()):
        raise CountingError(f"its table has a dispatch without a number: {text[:40]!r}")
    return int(text)


def name(text: str) -> str:
    """Return a kernel's name without its arguments, fit for a table: what stands in it is the submission's choice."""
    plain = text.replace("(anonymous namespace)::", "").split("(")[0].removeprefix("void ").strip()
    return re.sub(r"[^\w<>:,.~+-]+", " ", plain, flags=re.ASCII)[:NAME].strip() or "?"


def grouped(dispatches: Sequence[Dispatch], cases: Sequence[str]) -> list[Group]:
    """Return what was counted between each pair of markers, by case and kernel.

    Raises CountingError where there are not two markers a case: then nobody knows which call was whose.
    """
    ordered = sorted(dispatches, key=lambda d: d.order)
    marks = [i for i, d in enumerate(ordered) if MARKER in d.kernel]
    if len(marks) != 2 * len(cases):
        raise CountingError(f"its table has {len(marks)} marks for {len(cases)} cases; two each part their calls")
    found: list[Group] = []
    for case, (start, end) in zip(cases, zip(marks[::2], marks[1::2], strict=True), strict=True):
        of: dict[str, list[Dispatch]] = {}
        for dispatch in ordered[start + 1 : end]:
            of.setdefault(dispatch.kernel, []).append(dispatch)
        found += [Group(case, kernel, len(some), together([d.counts for d in some])) for kernel, some in of.items()]
    return found


def together(counts: Sequence[Mapping[str, float]], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return several sets of counts as one: sums, and means of shares (weighted where weights are given)."""
    weighted = list(zip(counts, weights or [1.0] * len(counts), strict=True))
    found: dict[str, float] = {}
    for key in dict.fromkeys(k for some in counts for k in some):
        having = [(some[key], weight) for some, weight in weighted if key in some]
        if key.endswith(SHARES):
            found[key] = sum(value * weight for value, weight in having) / sum(weight for _, weight in having)
        else:
            found[key] = sum(value for value, _ in having)
    return found
