"""Places of inputs and outputs in memory that the evaluator shares with one worker, and guard bands around them.

What has a place is a storage, of which one or more tensors are views. Values and addresses change independently: a
storage may get a new offset in its pages. Random bytes surround it, so that who writes beside it is noticed.
"""

from __future__ import annotations

import abc
import mmap
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.storages import Spot
from kernel_scientist.workers.native import SLOTS

if TYPE_CHECKING:
    import torch

OUTSIDE = "it wrote outside its buffers"


@dataclass(frozen=True)
class Content:
    """What is written to the place of one storage."""

    values: torch.Tensor | int
    """Its bytes, or the byte that fills it."""
    returnable: tuple[tuple[int, int], ...] = ()
    """First byte and end of each tensor in it that a kernel may return."""
    protected: bool = False
    """Whether a kernel may change nothing in it."""
    fixed: torch.Tensor | None = None
    """Which bytes a kernel may not change, where it may change others."""
    items: tuple[int, ...] = ()
    """Numbers of the inputs that lie in it."""


@dataclass
class StoragePages:
    """Pages for one storage, and its current place in them."""

    start: int
    length: int
    size: int
    offset: int = 0
    guard: Any = b""
    content: Content | None = None
    """What was written last."""


class Places(abc.ABC):
    """Storages in one memory. Not thread-safe.

    A slot holds the inputs of one call. `SLOTS` slots make a group, such as a case's: the first one has its own memory,
    the others use the same memory as those of other groups, so that a row of calls touches few new pages.
    """

    LINE: ClassVar[int]
    """Bytes of which offsets are multiples."""
    GUARD_BYTES: ClassVar[int]
    HALF: ClassVar[str] = "{mib} MiB, half of harness.memory_mib"
    """Half of the memory, in words."""

    def __init__(self, size: int, reserved: int = 0) -> None:
        """`reserved`: bytes at the beginning that are not for tensors."""
        self.size, self._reserved = size, reserved
        self.rng = random.SystemRandom()
        self.storages: dict[tuple[int, int], StoragePages] = {}
        """By slot and number."""
        self.kept_end, self.outputs_end = reserved, size // 2
        """End of the memory of first slots, and of outputs."""
        self._ends: dict[int, int] = {}
        """By group, end of the memory of the other slots."""

    @property
    def shared_end(self) -> int:
        """End of the memory that slots other than first ones have used."""
        return max(self.outputs_end, *self._ends.values(), 0)

    def forget(self) -> None:
        """Forget all places."""
        self.storages.clear()
        self._ends.clear()
        self.kept_end, self.outputs_end = self._reserved, self.size // 2

    def place(self, slot: int, index: int, size: int, fresh: bool) -> Spot:
        """Return the place of a slot's storage of `size` bytes. Raises SetupError if there is no room."""
        around = size + 2 * self.GUARD_BYTES
        pages = self.storages.get((slot, index))
        if pages is None or pages.length < around:
            length = (-(-around // mmap.PAGESIZE) + 1) * mmap.PAGESIZE
            pages = self.storages[slot, index] = StoragePages(self._allocate(slot, length), length, size)
            fresh = True
        if fresh or pages.size != size:
            pages.size, room = size, pages.length - around
            pages.offset = pages.start + self.GUARD_BYTES + self.LINE * self.rng.randrange(room // self.LINE + 1)
        return Spot(pages.offset, pages.start, pages.length)

    def _allocate(self, slot: int, length: int) -> int:
        group, keeps = divmod(slot, SLOTS)
        start = self.kept_end if keeps == 0 else self._ends.get(group, self.size // 2)
        if start + length > (self.size // 2 if keeps == 0 else self.size):
            raise SetupError(f"inputs need more than {self.HALF.format(mib=self.size >> 21)}: raise it")
        if keeps == 0:
            self.kept_end += length
        else:
            self._ends[group] = start + length
        return start

    def outbox(self) -> tuple[int, int]:
        """Return the offset at which outputs can be copied, and the bytes of room there."""
        start = max((*self._ends.values(), self.size // 2))
        start = -(-start // self.LINE) * self.LINE
        return start, max(0, self.size - start)

    def outputs(self, total: int) -> int:
        """Return an offset at which `total` bytes of outputs can be copied. Raises MemoryError without room."""
        start, room = self.outbox()
        if total > room:
            raise MemoryError(f"with its inputs that is more than {self.HALF.format(mib=self.size >> 21)}")
        self.outputs_end = max(self.outputs_end, start + total)
        return start

    def holds(self, offset: int, size: int) -> bool:
        """Whether `size` bytes at `offset` lie in this memory."""
        return offset >= max(self._reserved, 0) and offset + size <= self.size

    def is_output_buffer(self, slot: int, start: int, size: int) -> bool:
        """Whether these bytes belong to a tensor of the slot that a kernel may return."""
        return any(
            pages.offset + first <= start and start + size <= pages.offset + end
            for pages in self.of(slot)
            if pages.content is not None
            for first, end in pages.content.returnable
        )

    def of(self, slot: int) -> list[StoragePages]:
        """Return the pages of a slot's storages."""
        return [pages for (owner, _), pages in self.storages.items() if owner == slot]

    @abc.abstractmethod
    def write(self, slot: int, index: int, content: Content) -> None:
        """Write a storage's bytes at its place, and new guard bands around it."""

    @abc.abstractmethod
    def written(self) -> None:
        """Finish a row's inputs: when this returns, their values are in place and in no cache."""

    @abc.abstractmethod
    def damage(self, slot: int) -> str:
        """Return what was written that may not be; empty if nothing was."""

    @abc.abstractmethod
    def read(self, offset: int, size: int) -> protocol.Values:
        """Return a copy of bytes of the memory."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Wipe the memory for another worker; new pages would cost far more."""

    @abc.abstractmethod
    def close(self) -> None:
        """Free the memory."""
