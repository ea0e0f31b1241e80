"""What a kernel's instructions come to: matrix instructions, memory accesses, waits, and the mix by loop depth."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kernel_scientist.inspection.loops import Flow, depths


class Instruction(NamedTuple):
    """One instruction, as far as it is of interest."""

    kind: str
    """Its key in a mix: `valu`, `lds_read 128`, ...; a matrix instruction's own name."""
    matrix: bool = False
    access: str = ""
    """Kind and bits per lane, such as `buffer_load 128`; empty where it touches no memory."""
    jump: str | None = None
    """The label that it may jump to."""
    falls: bool = True
    """Whether the next instruction may follow."""


class Tally(NamedTuple):
    """The fields of a code object that are counted (see `records.CodeObject`)."""

    mfma: dict[str, int]
    accesses: dict[str, int]
    waits: int
    barriers: int
    mix: tuple[dict[str, int], ...]

    @staticmethod
    def of(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> "Tally":
        """Count a kernel's instructions. `labels`: index of the instruction that follows each label."""
        count = len(instructions)
        places = {name: index for name, index in labels.items() if index < count}
        flow = [Flow(places.get(i.jump) if i.jump is not None else None, i.falls) for i in instructions]
        depth = depths(flow)
        mix: list[Counter[str]] = [Counter() for _ in range(max(depth, default=-1) + 1)]
        for instruction, level in zip(instructions, depth, strict=True):
            mix[level][instruction.kind] += 1
        return Tally(
            mfma=dict(Counter(i.kind for i in instructions if i.matrix)),
            accesses=dict(Counter(i.access for i in instructions if i.access)),
            waits=sum(i.kind == "wait" for i in instructions),
            barriers=sum(i.kind == "barrier" for i in instructions),
            mix=tuple(dict(level) for level in mix),
        )
