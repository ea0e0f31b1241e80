"""Where the calls of a kernel on a CPU spend their time: shares of samples by source line, and elsewhere."""

from collections.abc import Sequence

from pydantic import Field

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.source_line import WIDEST

FEW = 100
"""Below so many samples a share of some percent is chance."""
EVIDENCE = (
    "A hint where to look, from the kernel's own process: neither a measured time nor part of the verdict. "
    "Shares are of the CPU time of all threads together: what one of N threads does alone delays a call by up to N "
    "times its share. A share includes waits for memory, and may belong to the line before. Inputs are fresh, but may "
    "lie in a cache, unlike timed ones. Line numbers are those of the whole file. A function that was put into its "
    "callers has its own lines, with the time of all of them."
)
UNITS = {
    "instructions_per_cycle": "instructions per cycle",
    "cache_misses": "last-level cache misses per 1000 instructions",
    "branch_misses": "mispredicted branches per 1000 instructions",
}
"""Names of `Sampled.figures`, with their meaning."""


class SampledLine(Record):
    """Samples that were taken in the code of one source line."""

    line: int
    """Number in the submission's file; 0 where it is not known."""
    text: str
    """The line."""
    share: Finite
    """Of all samples, 0 to 1."""


class Elsewhere(Record):
    """Samples that were taken outside the code of the kernel's file."""

    where: str
    """A library, Python, the operating system or other code."""
    share: Finite
    """Of all samples, 0 to 1."""


class Sampled(Record):
    """Samples of a C++ kernel's warm calls on one timed case, of all its threads. A share is one of CPU time."""

    case: str
    """Name of the case."""
    samples: int
    """Number of samples."""
    threads: tuple[Finite, ...]
    """Each thread's share of the samples, the largest first."""
    own: Finite
    """Share of the samples in the code that the kernel's file has compiled."""
    lines: tuple[SampledLine, ...] = ()
    """The lines with the largest shares. Code that the compiler moved or merged counts where the compiler says."""
    elsewhere: tuple[Elsewhere, ...] = ()
    """The other samples, by place, the largest share first."""
    figures: dict[str, Finite] = Field(default_factory=dict)
    """Hardware counters of such calls, as ratios (`UNITS`); empty where this machine offers none."""
    remarks: tuple[str, ...] = ()
    """What could not be seen, and why."""

    def __str__(self) -> str:
        return "\n".join(table(self))


def table(one: Sampled) -> list[str]:
    """Return lines of text: what was sampled, the lines and places by share, hardware counters, remarks."""
    shares = ", ".join(f"{share:.0%}" for share in one.threads)
    spread = f" ({shares} of it, waiting awake included)" if len(one.threads) > 1 else ""
    threads = f"{len(one.threads)} thread{'' if len(one.threads) == 1 else 's'}{spread}"
    few = "; few, so that shares are rough" if one.samples < FEW else ""
    head = f"case {one.case}: {one.samples} samples of CPU time, {threads}{few}"
    rows = [f"{share}  {place}" for share, place in _rows(one.lines, one.elsewhere)]
    figures = [f"{UNITS.get(name, name)}: {value:.3g}" for name, value in one.figures.items()]
    if (rest := one.own - sum(line.share for line in one.lines)) >= 0.005:
        rows.append(f"{rest:.0%}".rjust(4) + "  other lines")
    return [head, EVIDENCE, f"in the kernel's own code: {one.own:.0%}", *rows, *figures, *one.remarks]


def _rows(lines: Sequence[SampledLine], elsewhere: Sequence[Elsewhere]) -> list[tuple[str, str]]:
    places = [(one.share, f"line {one.line or '?'}: {_cut(one.text)}") for one in lines]
    places += [(one.share, f"outside: {one.where}") for one in elsewhere]
    return [(f"{share:.0%}".rjust(4), place) for share, place in sorted(places, key=lambda place: -place[0])]


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 4]} ..."
