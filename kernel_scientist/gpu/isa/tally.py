"""Counts a kernel's instructions: matrix instructions, memory accesses, waits, and the mix by loop depth."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np


class Instruction(NamedTuple):
    """The relevant properties of an instruction."""

    kind: str
    """Its key in a mix: `valu`, `lds_read 128`, ...; a matrix instruction's own name."""
    matrix: bool = False
    access: str = ""
    """Kind and bits per lane, such as `buffer_load 128`, or the name of an atomic; empty without a memory access."""
    jump: str | None = None
    """Label of the jump's target, if any."""
    falls: bool = True
    """Whether the next instruction may follow."""


def tally(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> dict[str, Any]:
    """Return the counted fields of a `CodeObject`. `labels`: index of the instruction that follows each label."""
    depth = depths(instructions, labels)
    mix: list[Counter[str]] = [Counter() for _ in range(max(depth, default=-1) + 1)]
    for instruction, level in zip(instructions, depth, strict=True):
        mix[level][instruction.kind] += 1
    return {
        "mfma": dict(Counter(i.kind for i in instructions if i.matrix)),
        "accesses": dict(Counter(i.access for i in instructions if i.access)),
        "waits": sum(i.kind == "wait" for i in instructions),
        "barriers": sum(i.kind == "barrier" for i in instructions),
        "mix": tuple(dict(level) for level in mix),
    }


if TYPE_CHECKING:
    from scipy.sparse import csr_array

DEEPEST = 16
"""Maximum depth: deeper loops count as this deep, which bounds the work on hostile code."""


def depths(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> list[int]:
    """Return the number of loops around each instruction; 0 for unreachable ones.

    A loop is a strongly connected component of the control flow graph. A component that remains after removing the
    jumps to the loop's entries is a nested loop (Steensgaard, Sequentializing program dependence graphs for irreducible
    programs, 1993). Cold blocks that the compiler moved to the end are not mistaken for loops.
    """
    from scipy.sparse import csgraph  # here, as most commands that import this module never call it

    count = len(instructions)
    jumps = ((i, labels.get(step.jump, count)) for i, step in enumerate(instructions) if step.jump is not None)
    edges = [(i, target) for i, target in jumps if target < count]
    edges += [(i, i + 1) for i, step in enumerate(instructions[:-1]) if step.falls]
    left = np.array([(count, 0), *edges], dtype=np.int64)  # node `count` is the kernel's caller
    depth = np.zeros(count + 1, dtype=np.int64)
    left = left[np.isin(left[:, 0], csgraph.breadth_first_order(_graph(left, count + 1), count)[0])] if count else left
    for _ in range(DEEPEST):
        loop = _components(left, count + 1)
        inside = loop[left[:, 0]] == loop[left[:, 1]]
        if not inside.any():
            break
        depth[np.unique(left[inside])] += 1
        left = left[inside & ~np.isin(left[:, 1], left[~inside, 1])]  # without the jumps to the entries
    return [int(d) for d in depth[:count]]


def _graph(edges: np.ndarray, count: int) -> "csr_array":
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(count, count))


def _components(edges: np.ndarray, count: int) -> np.ndarray:
    from scipy.sparse import csgraph

    return csgraph.connected_components(_graph(edges, count), directed=True, connection="strong")[1]
