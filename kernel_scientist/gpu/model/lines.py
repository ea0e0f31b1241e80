"""What a program does one after the other, by line of its source: a profile that is predicted, not measured.

The performance model says how long a program by itself takes in each pipeline and waits for memory
(`predict.Alone`); the machine's counts say which lines that comes from. What other programs on the same unit hide is
in it: the line's share of what limits the launch stands beside it.
"""

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field

from kernel_scientist.gpu.machine import waits
from kernel_scientist.gpu.machine.listing import Listing
from kernel_scientist.gpu.model.executed import LaunchCounts, costs
from kernel_scientist.gpu.model.issue import matrix_flops
from kernel_scientist.gpu.model.predict import Alone, CostEstimate
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.source_line import SourceLine

MOST = 12
"""Lines that are kept."""
LEAST = 0.005
"""Share of the program's time below which a line or a cause is not named."""
MEMORY = ("hbm", "cache", "l2")
"""Limits that lines of memory add to which L1 does not hold."""


@dataclass
class LineWork:
    """What the instructions of one source line do."""

    amounts: dict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    """By cause as in `Alone`, in whatever unit; `memory`: lines that L1 does not hold; `barrier`: executed ones."""
    callers: Counter[int] = field(default_factory=Counter[int])
    awaited: Counter[int] = field(default_factory=Counter[int])
    """Waits, by the line of the load."""


def by_line(
    kernel: str, counts: LaunchCounts, listing: Listing, estimate: CostEstimate, gpu: Gpu, source: str
) -> tuple[SourceLine, ...]:
    """Return the lines of a launch's kernel that matter most, by the share of what limits it or of a program's time.

    `source`: the submission's file.
    """
    works, whole, alone = _works(counts, listing), defaultdict[str, float](float), estimate.alone
    for work in works.values():
        for name, amount in work.amounts.items():
            whole[name] += amount
    limit, texts, cycles = estimate.costs.largest, source.splitlines(), alone.us * gpu.clock_ghz * 1e3
    key = "memory" if limit in MEMORY else limit
    found: list[SourceLine] = []
    for line, work in works.items():
        causes = _causes(work, whole, alone)
        share = sum(causes.values())
        of_limit = share if limit == "latency" else work.amounts[key] / whole[key] if whole[key] else 0.0
        one = SourceLine(
            kernel=kernel,
            line=line,
            text=texts[line - 1].strip() if 0 < line <= len(texts) else "",
            callers=tuple(sorted(work.callers)),
            share=round(share, 4),
            cycles=round(share * cycles, 1),
            causes={name: round(s, 4) for name, s in sorted(causes.items(), key=lambda c: -c[1]) if s >= LEAST},
            waits_for=tuple(number for number, _ in work.awaited.most_common() if number != line),
            limit=limit,
            of_limit=round(of_limit, 4),
            barriers=round(work.amounts["barrier"] / counts.waves, 2),
        )
        found.append(one)
    kept = [one for one in found if max(one.share, one.of_limit) >= LEAST]
    return tuple(sorted(kept, key=lambda one: -max(one.share, one.of_limit))[:MOST])


def _works(counts: LaunchCounts, listing: Listing) -> dict[int, LineWork]:
    found = defaultdict[int, LineWork](LineWork)
    loads = waits.awaited(listing) if any(counts.waits) else {}
    line_of = dict(zip(counts.instructions, counts.source_lines, strict=True))
    places = zip(counts.instructions, counts.source_lines, counts.callers, strict=True)
    did = zip(counts.waits, counts.requests, costs(counts, listing.statements), strict=True)
    for (number, line, caller), (waited, requests, (executed, pipe, cycles, kind)) in zip(places, did, strict=True):
        work = found[line]
        if pipe:
            work.amounts[pipe] += cycles
        work.amounts["matrix"] += executed * matrix_flops(kind)
        work.amounts["wait"] += waited
        work.amounts["memory"] += requests
        work.amounts["barrier"] += executed if kind == "barrier" else 0
        work.amounts["spills"] += executed if kind.startswith("scratch_load") else 0
        if caller:
            work.callers[caller] += executed
        if waited:
            own = {line_of[load] for load in loads.get(number, ()) if load in line_of}
            work.awaited.update(dict.fromkeys(own, waited))
    return found


def _causes(work: LineWork, whole: dict[str, float], alone: Alone) -> dict[str, float]:
    """Return a line's shares of a program's time, by cause."""
    times = asdict(alone).items()
    return {cause: us / alone.us * work.amounts[cause] / whole[cause] for cause, us in times if whole[cause]}
