"""How many loops each instruction stands in, from the jumps alone.

A loop is a strongly connected part of the control flow; what is one still, once the jumps to its entry are taken away,
is a loop inside it. (Steensgaard, Sequentializing program dependence graphs for irreducible programs, 1993.) Unlike
"from a label to a later branch back to it", cold blocks that the compiler put at the end do not look like loops.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csgraph, csr_array

DEEPEST = 16
"""Deeper loops are counted as this deep; it bounds the work on hostile code."""


class Flow(NamedTuple):
    """Where control goes after an instruction."""

    target: int | None = None
    """Index of the instruction that it may jump to."""
    falls: bool = True
    """Whether it may go on to the next one."""


def depths(flow: Sequence[Flow]) -> list[int]:
    """Return, per instruction, the number of loops that enclose it; 0 for what is never reached."""
    count = len(flow)
    edges = [(i, step.target) for i, step in enumerate(flow) if step.target is not None]
    edges += [(i, i + 1) for i, step in enumerate(flow[:-1]) if step.falls]
    left = np.array([(count, 0), *edges], dtype=np.int64)  # node `count`: whoever starts the kernel
    depth = np.zeros(count + 1, dtype=np.int64)
    left = left[np.isin(left[:, 0], csgraph.breadth_first_order(_graph(left, count + 1), count)[0])] if count else left
    for _ in range(DEEPEST):
        loop = _components(left, count + 1)
        inside = loop[left[:, 0]] == loop[left[:, 1]]
        if not inside.any():
            break
        depth[np.unique(left[inside])] += 1
        left = left[inside & ~np.isin(left[:, 1], _entries(left, inside))]
    return [int(d) for d in depth[:count]]


def _graph(edges: np.ndarray, count: int) -> csr_array:
    return csr_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(count, count))


def _components(edges: np.ndarray, count: int) -> np.ndarray:
    return csgraph.connected_components(_graph(edges, count), directed=True, connection="strong")[1]


def _entries(edges: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return the instructions by which loops are entered."""
    return np.unique(edges[~inside, 1])
