"""Where a GPU kernel spends its time, by line of its source: a record per line, and the lines as text."""

from collections.abc import Sequence

from pydantic import Field

from kernel_scientist.records.base import Finite, Record

WIDEST = 70
"""Most characters of a line's text that are shown."""
MOST_CALLERS = 3
"""Most lines that are named which call a function."""

CAUSES = (
    "`lds` includes conflicts between banks, `l1` is the issue of accesses to memory, `wait` waits for their results; "
    "how long waves wait at barriers is not predicted"
)
"""What the causes mean."""


class SourceLine(Record):
    """What a line of a GPU kernel's source takes of the time of one program by itself, as the model predicts it."""

    kernel: str
    """Name of the GPU kernel."""
    line: int
    """Number in the submission's file; 0 where it is not known."""
    text: str
    """The line."""
    callers: tuple[int, ...] = ()
    """Lines that call the function which the line is in, if the compiler put it in there; a function of a few lines
    counts as a part of the line that calls it."""
    share: Finite
    """Of the program's time, 0 to 1."""
    cycles: Finite = 0.0
    """That time, in cycles."""
    causes: dict[str, Finite] = Field(default_factory=dict)
    """That share by cause, the largest first: `vector`, `matrix`, `lds` (with conflicts between banks), `l1` (issue of
    accesses to memory), `wait` (for memory), `spills` (waits for scratch memory)."""
    waits_for: tuple[int, ...] = ()
    """Lines whose loads it waits for, as far as they are others."""
    limit: str = ""
    """The resource that limits the launch, as in `Prediction.limited_by`; other programs hide what a program waits for
    unless it is `latency`."""
    of_limit: Finite = 0.0
    """The line's share of what that resource does: cycles of a pipeline, or lines of memory that L1 does not hold."""
    barriers: Finite = 0.0
    """Barriers that a wave comes to there. How long it waits there for other waves is not predicted."""

    @property
    def why(self) -> str:
        """The causes as text."""
        causes = [f"{name} {share:.0%}" for name, share in self.causes.items()]
        if self.waits_for and "wait" in self.causes:
            place = list(self.causes).index("wait")
            causes[place] += f" for line {_numbers(self.waits_for)}"
        if self.barriers:
            causes.append(f"{self.barriers:.4g} barrier{'s' if self.barriers > 1 else ''}")
        return ", ".join(causes)


def meaning(lines: Sequence[SourceLine]) -> str:
    """Return a sentence on what the columns of `table` mean."""
    kernel, limit = lines[0].kernel, lines[0].limit
    alone = "`alone`: share of the time of one of its programs by itself on a unit"
    title = f"{kernel} by source line (predicted, not measured)"
    if limit in ("", "latency"):
        return f"{title}; {alone}"
    return f"{title}; `of {limit}`: share of what limits it; {alone}, where no other hides its waits"


def table(lines: Sequence[SourceLine]) -> list[str]:
    """Return lines of one launch as rows of text under a header, their columns aligned."""
    if not lines:
        return []
    shared = lines[0].limit not in ("", "latency")
    names = ["line", *([f"of {lines[0].limit}"] if shared else []), "alone", "cycles", "causes of the time alone"]
    rows = [names, *(_cells(one, shared) for one in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = ["source", *(_text(one) for one in lines)]
    return [_row(row, widths, text) for row, text in zip(rows, texts, strict=True)]


def _cells(one: SourceLine, shared: bool) -> list[str]:
    shares = [one.of_limit, one.share] if shared else [one.share]
    return [str(one.line or "?"), *(f"{share:.0%}" for share in shares), f"{one.cycles:.0f}", one.why]


def _row(cells: Sequence[str], widths: Sequence[int], text: str) -> str:
    """Return a row: numbers to the right, the causes and the line's text to the left."""
    numbers = [cell.rjust(width) for cell, width in zip(cells[:-1], widths, strict=False)]
    return "  ".join([*numbers, cells[-1].ljust(widths[-1]), text]).rstrip()


def _text(one: SourceLine) -> str:
    called = f"  (called from line {_numbers(one.callers)})" if one.callers else ""
    return one.text[:WIDEST] + called


def _numbers(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines[:MOST_CALLERS])) + (", ..." if len(lines) > MOST_CALLERS else "")
