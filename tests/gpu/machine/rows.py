"""A row of the tests' own table: the types of an instruction's operands and what it computes."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.gpu.machine.values import Array


@dataclass(frozen=True)
class Row:
    """One vector instruction without operands beyond its sources."""

    to: str
    """Type of the result."""
    sources: tuple[str, ...]
    compute: Callable[..., Array]
    """Of arrays of the sources' types; integers that saturate come as exact 64-bit numbers."""
    form: str
    """`vop1` or `vop2`, which have e32, e64, SDWA and DPP; or `vop3`."""
    ulps: int = 0
    """By how many units in the last place the device may err."""
    absolute: float = 0.0
    within: float = 0.0
    """Largest operand that the document allows, 0 for any."""
    saturates: bool = False
    """Whether `clamp` keeps an integer within its type."""
    keeps_high: bool = False
    """Whether a 16-bit result leaves the upper half of its register; others set it to zero (LLVM, GCNSubtarget)."""
    high_unknown: bool = False
    """Whether no document says what becomes of the upper half."""
    onto: bool = False
    """Whether the former destination is the last source."""
