"""Distributes a launch's programs over a GPU's units: residency, number of rounds, fill of the last round."""

import math
from dataclasses import dataclass

from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import CodeObject


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
