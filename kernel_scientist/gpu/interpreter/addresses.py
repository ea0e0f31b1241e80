"""Finds the allocation of each lane of an access, and the lanes that are out of bounds.

Imports only numpy and triton.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import triton

from kernel_scientist.gpu.interpreter import defect
from kernel_scientist.gpu.interpreter.allocations import TAG_SHIFT, Allocation, Allocations
from kernel_scientist.gpu.interpreter.defect import Array, Ledger, Origin, Program, Site

Handle = Any
ADDRESS = np.uint64((1 << TAG_SHIFT) - 1)
FOREIGN = tuple(str(Path(file).parent) for file in (triton.__file__, np.__file__, __file__))
"""Folders of library code: lines in them are not the kernel's."""


@dataclass
class Launch:
    """The current launch. Program numbers continue from launch to launch: those of this one are above `base`."""

    kernel: str
    names: dict[int, str]
    """Names of the launch's tensors, by tag."""
    base: int
    grid: Program = (1, 1, 1)
    program: Program = (0, 0, 0)
    me: int = 0
    run: int = 0
    """Number of programs that have run."""
    suspects: int = 0
    """Lanes that wrote memory that another program had read: harmless if that program did not use the value."""
    atomics: bool = False
    partial: bool = False
    """Whether only some programs run."""

    @property
    def total(self) -> int:
        """Return the number of programs of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def everyone(self) -> int:
        """Return the number that means more than one program."""
        return self.base + self.total + 1

    def site(self) -> Site:
        """Return the kernel's line that is being interpreted: the innermost one outside of libraries."""
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None:
            if not frame.f_code.co_filename.startswith(FOREIGN):
                return Site(self.kernel, frame.f_code.co_filename, frame.f_lineno)
            frame = frame.f_back
        return Site(self.kernel, "", 0)


@dataclass(frozen=True)
class Lanes:
    """The active lanes of an access in one allocation."""

    allocation: Allocation
    where: Array
    """Positions of the lanes in the flattened block."""
    offsets: Array
    """Offsets in bytes from the start of the allocation."""
    width: int
    tensor: str
    before: int
    """Bytes of the allocation before the tensor that the pointer was made from."""
    size: int
    """Element size of that tensor in bytes."""

    def element(self, lane: int) -> int:
        """Return the index of the tensor's element that a lane accesses."""
        return (int(self.offsets[lane]) - self.before) // self.size

    def granules(self) -> Array:
        """Return the granules [lane, :] that the lanes access."""
        return self.allocation.granules_of(self.offsets, self.width)


class Addresses:
    """Groups the lanes of an access by allocation, and reports lanes that are out of bounds."""

    def __init__(self, allocations: Allocations, ledger: Ledger) -> None:
        self.allocations, self.ledger = allocations, ledger

    def sort(self, launch: Launch, pointers: Array, active: Array, width: int, writes: bool) -> list[Lanes]:
        """Return the active lanes by allocation; clear lanes without one in `active` (contiguous), in place."""
        where = np.flatnonzero(active)
        addresses = pointers.ravel()[where]
        found: list[Lanes] = []
        for tag, chosen in _by_tag(addresses):
            for lanes in self._of_tag(launch, tag, addresses[chosen] & ADDRESS, where[chosen], width):
                if (inside := self._inside(launch, lanes, active, writes)) is not None:
                    found.append(inside)
        return found

    def locate(self, launch: Launch, address: int) -> tuple[str, int]:
        """Return the tensor's name and the element index of a tagged address, in or out of bounds."""
        if (known := self.allocations.tagged(address >> TAG_SHIFT)) is None:
            return "a tensor", address
        _, origin, size = known
        return launch.names.get(address >> TAG_SHIFT, "a tensor"), ((address & int(ADDRESS)) - origin) // size

    def _of_tag(self, launch: Launch, tag: int, addresses: Array, where: Array, width: int) -> Iterator[Lanes]:
        known = self.allocations.tagged(tag)
        if known is not None:
            allocation, origin, size = known
            offsets = (addresses - np.uint64(allocation.base)).view(np.int64)
            name = launch.names.get(tag, "a tensor")
            yield Lanes(allocation, where, offsets, width, name, origin - allocation.base, size)
            return
        while addresses.size:  # pointers made from integers: any live allocation is accepted
            allocation = self.allocations.containing(int(addresses[0]))
            if allocation is None:
                allocation = Allocation.nothing(int(addresses[0]))
            offsets = (addresses - np.uint64(allocation.base)).view(np.int64)
            here = (offsets >= 0) & (offsets < max(allocation.size, 1))
            yield Lanes(allocation, where[here], offsets[here], width, "a tensor given by its address", 0, width)
            addresses, where = addresses[~here], where[~here]

    def _inside(self, launch: Launch, lanes: Lanes, active: Array, writes: bool) -> Lanes | None:
        """Return the lanes that may access memory there; the others are a defect, and are switched off."""
        if writes and not lanes.allocation.writable and lanes.allocation.size:
            place = launch.program, lanes.element(0), launch.total
            self.ledger.forbidden(
                Origin(defect.READ_ONLY_WRITE, launch.site(), lanes.tensor, *place, lanes=lanes.where.size)
            )
            active.ravel()[lanes.where] = False
            return None
        room = lanes.allocation.size - lanes.width
        inside = (lanes.offsets >= 0) & (lanes.offsets <= room)
        if inside.all():
            return lanes
        outside = np.flatnonzero(~inside)
        kind = defect.OUT_OF_BOUNDS_WRITE if writes else defect.OUT_OF_BOUNDS_READ
        place = launch.program, lanes.element(int(outside[0])), launch.total
        self.ledger.forbidden(Origin(kind, launch.site(), lanes.tensor, *place, lanes=outside.size))
        active.ravel()[lanes.where[outside]] = False
        if not inside.any():
            return None
        rest = lanes.where[inside], lanes.offsets[inside]
        return Lanes(lanes.allocation, *rest, lanes.width, lanes.tensor, lanes.before, lanes.size)


def _by_tag(addresses: Array) -> Iterator[tuple[int, Any]]:
    if addresses.size == 0:
        return
    tags = addresses >> np.uint64(TAG_SHIFT)
    if (tags == tags[0]).all():
        yield int(tags[0]), slice(None)
        return
    for tag in np.unique(tags):
        yield int(tag), np.flatnonzero(tags == tag)
