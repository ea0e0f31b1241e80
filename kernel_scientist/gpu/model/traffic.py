"""Memory traffic and flops of a launch, as counted by a trace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Traffic:
    """Bytes and flops of a launch, summed over its grid (see `capture.trace`)."""

    programs: int
    asked_bytes: float
    """Bytes of all lanes, masked-off lanes included."""
    lines_bytes: float
    l2_bytes: float
    unique_bytes: float
    flops: dict[str, float] = field(default_factory=dict[str, float])
    trips: tuple[float, ...] = ()
    storages: Mapping[str, float] = field(default_factory=dict[str, float])
    """Bytes of the arguments by storage."""

    @staticmethod
    def of(counts: Mapping[str, Any]) -> "Traffic":
        """Return the traffic of a trace."""
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
