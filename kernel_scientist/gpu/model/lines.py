"""What a program does one after the other, by line of its source: a profile that is predicted, not measured.

The performance model says how long a program by itself takes in each pipeline and waits for memory
(`predict.Alone`); the machine's counts say which lines that comes from.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict

from kernel_scientist.gpu.machine.listing import Statement
from kernel_scientist.gpu.model.executed import LaunchCounts, costs
from kernel_scientist.gpu.model.issue import matrix_flops
from kernel_scientist.gpu.model.predict import Alone
from kernel_scientist.records.gpu import SourceLine

MOST = 12
"""Lines that are kept."""
LEAST = 0.005
"""Share of the program's time below which a line or a cause is not named."""


def by_line(
    kernel: str, counts: LaunchCounts, statements: Sequence[Statement], alone: Alone, source: str
) -> tuple[SourceLine, ...]:
    """Return the lines of a launch's kernel that take longest, the longest first. `source`: the submission's file."""
    work = defaultdict[str, dict[int, float]](lambda: defaultdict(float))
    rows = zip(counts.source_lines, counts.waits, costs(counts, statements), strict=True)
    for line, waits, (executed, pipe, cycles, kind) in rows:
        if pipe:
            work[pipe][line] += cycles
        work["matrix"][line] += executed * matrix_flops(kind)
        work["wait"][line] += waits
        work["spills"][line] += executed if kind.startswith("scratch_load") else 0
    shares = defaultdict[int, dict[str, float]](dict)
    for cause, us in asdict(alone).items():
        whole = sum(work[cause].values())
        for line, amount in work[cause].items() if whole else ():
            shares[line][cause] = us / alone.us * amount / whole
    texts = source.splitlines()
    found = [
        SourceLine(
            kernel=kernel,
            line=line,
            text=texts[line - 1].strip() if 0 < line <= len(texts) else "",
            share=round(sum(causes.values()), 4),
            causes={name: round(s, 4) for name, s in sorted(causes.items(), key=lambda c: -c[1]) if s >= LEAST},
        )
        for line, causes in shares.items()
    ]
    kept = [one for one in found if one.share >= LEAST]
    return tuple(sorted(kept, key=lambda one: -one.share)[:MOST])
