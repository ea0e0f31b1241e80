"""What a GPU's counters say of a kernel, as people read it."""

from collections.abc import Iterator, Sequence

from kernel_scientist.counters import Counters
from kernel_scientist.profiling import wording

SHOWN = 30
"""Lines of single kernels and cases."""


def lines(counters: Sequence[Counters]) -> Iterator[str]:
    """Yield what was counted line by line; nothing where nothing was."""
    if not counters:
        return
    cases = len({c.case for c in counters})
    yield f"\ncounted by {counters[0].tool}, one call with cold caches on each of {cases} cases; no times:"
    for it in counters[:SHOWN]:
        times = f" x {it.dispatches}" if it.dispatches > 1 else ""
        yield f"  {it.case}, {it.kernel}{times}: {wording.said(it.figures)}"
    if len(counters) > SHOWN:
        yield f"  and {len(counters) - SHOWN} more"
    yield f"  together: {wording.total(counters)}"
