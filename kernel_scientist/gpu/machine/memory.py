"""The memory that launches may use.

Runs in workers: standard library and numpy only.
"""

import ctypes
import mmap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kernel_scientist.gpu.machine.program import Array

ALLOCATION = np.dtype([("start", "u8"), ("bytes", "u8"), ("writable", "u4"), ("reserved", "u4")], align=True)


class Copy(NamedTuple):
    """A copy by host code, or a fill (no `source`), that is done."""

    to: int
    source: int | None
    size: int
    to_host: bool | None
    """Whether it is memory of the host; None: the runtime did not allocate it."""
    from_host: bool | None


LARGE = 256 << 20
"""Bytes from which on an allocation is not written to before a kernel does: it may use little of it."""
_advise = ctypes.CDLL(None).madvise
_advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def clear(address: int, size: int) -> None:
    """Make bytes zero. Pages of a large allocation go back to the system, so that they take up no memory."""
    first, end = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE, (address + size) // mmap.PAGESIZE * mmap.PAGESIZE
    if end - first >= LARGE:
        ctypes.memset(first, 1, 1)
        _advise(first, end - first, mmap.MADV_DONTNEED)
        if ctypes.string_at(first, 1) == b"\0":  # memory that is shared, for example, keeps its content
            ctypes.memset(address, 0, first - address)
            ctypes.memset(end, 0, address + size - end)
            return
    ctypes.memset(address, 0, size)


def fill(address: int, size: int, pattern: int) -> None:
    """Fill what nobody wrote with a byte; of a large allocation only its beginning, the rest is zero."""
    if size > LARGE:
        clear(address, size)
    ctypes.memset(address, pattern, min(size, LARGE))


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

    def around(self, address: int) -> int | None:
        """Return where the allowed memory begins that contains an address; None if none does."""
        return next((start for start, (size, _) in self._places.items() if start <= address < start + size), None)

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
