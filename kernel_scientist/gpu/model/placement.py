"""How a launch's programs fall onto a GPU's units: how many at a time, in how many rounds, how full the last one is."""

import math
from dataclasses import dataclass

from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.evaluation import CodeObject


@dataclass(frozen=True)
class Placement:
    """How a grid falls onto a GPU's units."""

    programs: int
    resident: int
    """Programs that a unit holds at a time."""
    busiest: float
    """Programs that the busiest unit runs."""
    rounds: int
    """Generations of programs, one after the other."""

    @staticmethod
    def of(gpu: Gpu, code: CodeObject, programs: int) -> "Placement":
        """Place a grid. Workgroups go to units as these come free, so many small rounds even out."""
        resident = max(1, occupancy.resident(gpu.arch, code.num_warps, code.vgpr, code.agpr, code.lds_bytes))
        rounds = math.ceil(programs / (gpu.units * resident))
        even = programs / gpu.units
        busiest = math.ceil(even) if rounds <= 4 else even + 0.5
        return Placement(programs, resident, busiest, rounds)

    def tail(self, gpu: Gpu) -> float:
        """Return how much of the time the average unit stands idle."""
        return 1 - self.programs / gpu.units / self.busiest
