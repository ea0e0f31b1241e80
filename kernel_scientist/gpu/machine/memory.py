"""The memory that launches may use.

Runs in workers: standard library and numpy only.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from kernel_scientist.gpu.machine.program import Array

ALLOCATION = np.dtype([("start", "u8"), ("bytes", "u8"), ("writable", "u4"), ("reserved", "u4")], align=True)


@dataclass
class Memory:
    """The memory that launches may use."""

    _places: dict[int, tuple[int, bool]] = field(default_factory=dict[int, tuple[int, bool]])

    def add(self, address: int, size: int, writable: bool = True) -> None:
        """Allow `size` bytes from an address on."""
        if size > 0:
            self._places[address] = (size, writable)

    def remove(self, address: int) -> None:
        """Forbid what was allowed from this address on."""
        self._places.pop(address, None)

    def may_write(self, address: int) -> bool:
        """Return whether what is allowed from this address on may be written."""
        return self._places.get(address, (0, False))[1]

    def writable(self) -> list[tuple[int, int]]:
        """Return address and size of what may be written."""
        return [(start, size) for start, (size, writable) in self._places.items() if writable]

    def table(self, more: Iterable[tuple[int, int, bool]]) -> Array:
        """Return everything that is allowed, in the order of the addresses. Places that overlap, such as views of one
        tensor, become one: each address belongs to one entry. It is writable if one of them is.
        """
        found = [*((start, size, writable) for start, (size, writable) in self._places.items()), *more]
        disjoint = list[tuple[int, int, bool, int]]()
        for start, size, writable in sorted(found):
            if disjoint and start < disjoint[-1][0] + disjoint[-1][1]:
                first, before, allowed, _ = disjoint.pop()
                start, size, writable = first, max(before, start + size - first), writable or allowed
            disjoint.append((start, size, writable, 0))
        return np.array(disjoint, ALLOCATION)
