"""A launch as the model sees it: its memory traffic and flops, and its distribution over a GPU's units."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import CodeObject


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
    heaviest: float = 1.0
    """Work of the program that does most, over that of an average one."""

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
            heaviest=counts.get("heaviest", 1.0),
        )


@dataclass(frozen=True)
class Placement:
    """The distribution of a grid over a GPU's units."""

    programs: int
    resident: int
    """Programs per unit at the same time."""
    busiest: float
    """Programs that the busiest unit runs."""
    rounds: int
    """Rounds of programs, one after the other."""

    @staticmethod
    def of(gpu: Gpu, code: CodeObject, programs: int) -> "Placement":
        """Distribute a grid. Workgroups go to units that become free, so many small rounds balance out."""
        resident = max(1, occupancy.resident(gpu.arch, code.num_warps, code.vgpr, code.agpr, code.lds_bytes))
        rounds = math.ceil(programs / (gpu.units * resident))
        even = programs / gpu.units
        busiest = math.ceil(even) if rounds <= 4 else even + 0.5
        return Placement(programs, resident, busiest, rounds)

    def tail(self, gpu: Gpu) -> float:
        """Return the share of the time in which the average unit is idle."""
        return 1 - self.programs / gpu.units / self.busiest
