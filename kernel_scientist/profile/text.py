"""Hardware counters in words."""

from collections.abc import Sequence

from kernel_scientist.profile import metrics
from kernel_scientist.records.gpu import Counters, Figures

STALLS = 3
"""Stall reasons that are named, the most frequent first."""


def total(counters: Sequence[Counters]) -> str:
    """Return a submission's figures in a line, all of its kernels together."""
    return said(metrics.total(counters))


def said(of: Figures, must_bytes: float | None = None) -> str:
    """Return figures in a line. must_bytes: the least that the case has to move, if it is known."""
    parts: list[str] = []
    if of.hbm_read_bytes is not None and of.hbm_written_bytes is not None:
        moved = of.hbm_read_bytes + of.hbm_written_bytes
        share = f" ({moved / must_bytes:.3g} times what must be moved)" if must_bytes else ""
        read, written = _brief(of.hbm_read_bytes, "B"), _brief(of.hbm_written_bytes, "B")
        parts.append(f"{read} read from memory, {written} written{share}")
    if of.l2_hit_rate is not None:
        parts.append(f"L2 hit rate {100 * of.l2_hit_rate:.3g} %")
    if of.lds_conflicts_per_access is not None:
        parts.append(f"LDS bank conflicts cost {of.lds_conflicts_per_access:.2g} per access")
    if of.matrix_share is not None:
        parts.append(f"matrix instructions {100 * of.matrix_share:.3g} %")
    if of.matrix_flops:
        parts.append(f"{_brief(of.matrix_flops, 'FLOP')} on matrix units")
    if of.occupancy is not None:
        parts.append(f"occupancy {100 * of.occupancy:.3g} %")
    if waits := [(n, v) for n, v in sorted(of.stalls.items(), key=lambda item: -item[1])[:STALLS] if v > 0]:
        parts.append(f"warps wait for {', '.join(f'{name} {value:.2g}' for name, value in waits)} per instruction")
    return "; ".join(parts) or "no figures"


def _brief(count: float, unit: str) -> str:
    steps = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0, ""))
    size, prefix = next(step for step in steps if count >= step[0])
    return f"{count / (size or 1):.3g} {prefix}{unit}"
