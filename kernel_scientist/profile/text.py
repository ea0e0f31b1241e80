"""What was counted, in words."""

from collections.abc import Sequence

from kernel_scientist.profile import metrics
from kernel_scientist.records.gpu import Counters, Figures

STALLS = 3
"""Reasons to wait that are named, the most frequent first."""


def total(counters: Sequence[Counters]) -> str:
    """Say what a submission's kernels come to together."""
    return said(metrics.total(counters))


def said(of: Figures, must_bytes: float | None = None) -> str:
    """Say what counts come to, in a line. `must_bytes`: what has to be moved at the least, where it is known."""
    told: list[str] = []
    if of.hbm_read_bytes is not None and of.hbm_written_bytes is not None:
        moved = of.hbm_read_bytes + of.hbm_written_bytes
        share = f" ({moved / must_bytes:.3g} times what must be moved)" if must_bytes else ""
        read, written = _brief(of.hbm_read_bytes, "B"), _brief(of.hbm_written_bytes, "B")
        told.append(f"{read} read from memory, {written} written{share}")
    told += [] if of.l2_hit_rate is None else [f"L2 hit rate {100 * of.l2_hit_rate:.3g} %"]
    if of.lds_conflicts_per_access is not None:
        told.append(f"LDS bank conflicts cost {of.lds_conflicts_per_access:.2g} per access")
    told += [] if of.matrix_share is None else [f"matrix instructions {100 * of.matrix_share:.3g} %"]
    told += [] if not of.matrix_flops else [f"{_brief(of.matrix_flops, 'FLOP')} on matrix units"]
    told += [] if of.occupancy is None else [f"occupancy {100 * of.occupancy:.3g} %"]
    if waits := [(n, v) for n, v in sorted(of.stalls.items(), key=lambda item: -item[1])[:STALLS] if v > 0]:
        told.append(f"warps wait for {', '.join(f'{name} {value:.2g}' for name, value in waits)} per instruction")
    return "; ".join(told) or "nothing that says anything"


def _brief(count: float, unit: str) -> str:
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {prefix}{unit}"
    return f"{count:.3g} {unit}"
