"""Records of what a GPU's own counters say of a kernel: counts and ratios, never times."""

from pydantic import Field

from kernel_scientist.record import Finite, Record


class Figures(Record):
    """What counts come to. None: it was not counted."""

    hbm_read_bytes: Finite | None = None
    """From memory into L2. On AMD hits in the Infinity Cache are in it: an upper bound."""
    hbm_written_bytes: Finite | None = None
    """From L2 to memory, in the same manner."""
    l2_hit_rate: Finite | None = None
    """Share of L2's requests (NVIDIA: sectors) that it had."""
    lds_conflicts_per_access: Finite | None = None
    """What bank conflicts cost per access that has none, in cycles per cycle (NVIDIA: passes per pass)."""
    matrix_share: Finite | None = None
    """Matrix instructions among the vector ones (NVIDIA: among all)."""
    matrix_flops: Finite | None = None
    """What the matrix units computed, of all types together (AMD alone)."""
    occupancy: Finite | None = None
    """Waves (warps) that were there, as a share of those that a busy CU (SM) can hold."""
    stalls: dict[str, Finite] = Field(default_factory=dict[str, float])
    """Warps that waited per instruction issued, by reason (NVIDIA alone)."""


class Counters(Record):
    """What was counted of one kernel in one call of a submission on one case."""

    case: str
    kernel: str
    """As the profiler names it, without arguments."""
    tool: str
    """`rocprofv3` or `ncu`."""
    dispatches: int
    counts: dict[str, Finite]
    """By the tool's own names: sums over the dispatches, means of what is a share already."""
    figures: Figures
