"""Loop depth of each instruction, derived from the jumps.

A loop is a strongly connected component of the control flow graph. A component that remains after removing the jumps to
the loop's entries is a nested loop (Steensgaard, Sequentializing program dependence graphs for irreducible programs,
1993). Cold blocks that the compiler moved to the end are not mistaken for loops.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DEEPEST = 16
"""Maximum depth: deeper loops count as this deep, which bounds the work on hostile code."""


class Flow(NamedTuple):
    """The successors of an instruction."""

    target: int | None = None
    """Index of the jump's target, if any."""
    falls: bool = True
    """Whether the next instruction may follow."""


def depths(flow: Sequence[Flow]) -> list[int]:
    """Return the number of loops around each instruction; 0 for unreachable ones."""
    from scipy.sparse import csgraph  # here, as most commands that import this module never call it

    count = len(flow)
    edges = [(i, step.target) for i, step in enumerate(flow) if step.target is not None]
    edges += [(i, i + 1) for i, step in enumerate(flow[:-1]) if step.falls]
    left = np.array([(count, 0), *edges], dtype=np.int64)  # node `count` is the kernel's caller
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


def _graph(edges: np.ndarray, count: int) -> "csr_array":
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(count, count))


def _components(edges: np.ndarray, count: int) -> np.ndarray:
    from scipy.sparse import csgraph

    return csgraph.connected_components(_graph(edges, count), directed=True, connection="strong")[1]


def _entries(edges: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return the entry instructions of loops."""
    return np.unique(edges[~inside, 1])
