"""What a launch asks of memory and of the matrix units, as a trace counted it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Traffic:
    """What a launch asks for, summed over its grid; bytes, flops (see `inspection.trace`)."""

    programs: int
    asked_bytes: float
    """Of all lanes, masked ones included."""
    lines_bytes: float
    l2_bytes: float
    unique_bytes: float
    flops: dict[str, float] = field(default_factory=dict[str, float])
    trips: tuple[float, ...] = ()
    storages: Mapping[str, float] = field(default_factory=dict[str, float])
    """Bytes of the arguments by what they are stored in."""

    @staticmethod
    def of(counts: Mapping[str, Any]) -> "Traffic":
        """Return what a trace counted."""
        return Traffic(
            programs=counts["programs"],
            asked_bytes=counts["asked_bytes"],
            lines_bytes=counts["lines_bytes"],
            l2_bytes=counts["l2_bytes"],
            unique_bytes=counts["unique_bytes"],
            flops=dict(counts["flops"]),
            trips=tuple(counts["trips"]),
            storages=dict(counts["storages"]),
        )
