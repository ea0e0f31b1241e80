"""Which lane DPP reads, written from AMD's ISA document ("DPP Enumerations") and LLVM's names of the controls."""

from dataclasses import dataclass
from random import Random

import numpy as np

from tests.gpu.machine.values import Array

CONTROLS = (
    *(f"quad_perm:[{a},{b},{c},{d}]" for a, b, c, d in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 1, 1, 1), (2, 0, 3, 1))),
    *(f"row_shl:{n}" for n in (1, 2, 4, 8, 15)),
    *(f"row_shr:{n}" for n in (1, 2, 4, 8, 15)),
    *(f"row_ror:{n}" for n in (1, 2, 4, 8, 15)),
    *("wave_shl:1", "wave_rol:1", "wave_shr:1", "wave_ror:1", "row_mirror", "row_half_mirror"),
    *("row_bcast:15", "row_bcast:31"),
    *(f"row_newbcast:{n}" for n in (0, 7, 15)),
)


def source(control: str, lane: int) -> int:
    """The lane that is read, or -1 where there is none."""
    row, place = divmod(lane, 16)
    name, _, value = control.partition(":")
    if name == "quad_perm":
        return lane // 4 * 4 + int(value.strip("[]").split(",")[lane % 4])
    n = int(value) if value else 0
    if name == "row_shl":  # data move to lower lanes
        return lane + n if place + n <= 15 else -1
    if name == "row_shr":
        return lane - n if place - n >= 0 else -1
    if name == "row_ror":
        return 16 * row + (place - n) % 16
    if name == "row_newbcast":
        return 16 * row + n
    return {
        "wave_shl": lane + 1 if lane < 63 else -1,
        "wave_rol": (lane + 1) % 64,
        "wave_shr": lane - 1 if lane > 0 else -1,
        "wave_ror": (lane - 1) % 64,
        "row_mirror": 16 * row + 15 - place,
        "row_half_mirror": 16 * row + place // 8 * 8 + 7 - place % 8,
        "row_bcast": (16 * row - 1 if row else -1) if value == "15" else (31 if row >= 2 else -1),
    }[name]


@dataclass(frozen=True)
class Dpp:
    """A control, the rows and banks it is for, and whether lanes without a source read 0."""

    control: str
    row_mask: int
    bank_mask: int
    bound_ctrl: bool

    def text(self) -> str:
        masks = f"{self.control} row_mask:{hex(self.row_mask)} bank_mask:{hex(self.bank_mask)}"
        return masks + (" bound_ctrl:1" if self.bound_ctrl else "")

    def moved(self, bits: Array, active: Array) -> tuple[Array, Array]:
        """What each lane reads, and which lanes are written. Shapes (waves, 64)."""
        found, enabled = np.zeros_like(bits), active.copy()
        for lane in range(64):
            place = source(self.control, lane)
            there = active[:, place] if place >= 0 else np.zeros(len(bits), bool)
            found[:, lane] = np.where(there, bits[:, place], 0)
            chosen = self.row_mask >> lane // 16 & 1 and self.bank_mask >> lane // 4 % 4 & 1
            enabled[:, lane] &= bool(chosen) & (there | self.bound_ctrl)
        return found, enabled


def any_dpp(random: Random, wide: bool) -> Dpp:
    """A random one; 64-bit operands are moved by `row_newbcast` alone."""
    control = random.choice([c for c in CONTROLS if "newbcast" in c] if wide else CONTROLS)
    masks = [random.choice((15, 15, random.randrange(16))) for _ in range(2)]
    return Dpp(control, masks[0], masks[1], random.random() < 0.5)
