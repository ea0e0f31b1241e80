"""A launch as the model sees it: its memory traffic and flops, and its distribution over a GPU's units."""

import math
from dataclasses import dataclass, field
from typing import Annotated

import pydantic
from pydantic import ConfigDict, Field

from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import CodeObject

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Traffic:
    """Bytes and flops of a launch, summed over its grid; extrapolated from samples of it (`machine.sampler`)."""

    programs: Annotated[int, Field(ge=1)]
    asked_bytes: Amount = 0.0
    """Bytes of all lanes of loads, stores and atomics, masked-off lanes included."""
    lines_bytes: Amount = 0.0
    """Bytes of the distinct lines of each access: requests from L1 to L2."""
    l2_bytes: Amount = 0.0
    """Bytes of the distinct lines of all programs that share an L2 at a time: requests from L2 to memory."""
    unique_bytes: Amount = 0.0
    """Bytes of the distinct lines of the whole launch, at most the size of the arguments: compulsory traffic."""
    flops: dict[str, Amount] = field(default_factory=dict[str, float])
    """Flops of matrix instructions, by the type of their operands."""
    storages: Annotated[dict[str, Amount], Field(max_length=256)] = field(default_factory=dict[str, float])
    """Bytes of the arguments by storage: a later launch may find them in a cache."""
    heaviest: Amount = 1.0
    """Work of the program that does most, over that of an average one."""
    counted: Annotated[int, Field(ge=0)] = 0
    """Programs whose work was counted."""


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
        resident = max(1, occupancy.resident(gpu.arch, *code.needs))
        rounds = math.ceil(programs / (gpu.units * resident))
        even = programs / gpu.units
        busiest = math.ceil(even) if rounds <= 4 else even + 0.5
        return Placement(programs, resident, busiest, rounds)

    def tail(self, gpu: Gpu) -> float:
        """Return the share of the time in which the average unit is idle."""
        return 1 - self.programs / gpu.units / self.busiest
