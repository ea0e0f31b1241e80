"""Detects undefined reads and races: for each access, what was written before, and by which program of the launch.

Only atomics order programs. The accesses of two programs count as ordered if the first has done an atomic operation
that releases, and the second did one that acquires before this access, has read memory that the first updates
atomically, or loads it as volatile. Relaxed atomics and those of scope `cta` order nothing: each die has its own L2. A
store that does not change memory conflicts with nothing, so several programs may write the same value. Values that
depend on the order of programs get a code (see `undefined`), like memory that was never written. Imports only numpy.
"""

import numpy as np

from kernel_scientist.gpu.interpreter import defect
from kernel_scientist.gpu.interpreter.addresses import Lanes, Launch
from kernel_scientist.gpu.interpreter.defect import NEVER_WRITTEN, Array, Ledger


class History:
    """Reads, writes and updates of one launch after another."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.launch = Launch("", {}, 0)
        self._released: Array = np.zeros(1, np.bool_)
        """By program of this launch, whether it has done an atomic operation; the last entry: several programs."""
        self._acquired = False
        """Whether the current program has done an atomic operation or an equivalent."""

    def begin(self, launch: Launch) -> None:
        """Start a launch, or repeat it."""
        self.launch = launch
        self._released = np.zeros(launch.total + 1, np.bool_)
        self._released[-1] = True
        self._acquired = False

    def next_program(self) -> None:
        """Start the next program."""
        self._acquired = False

    def read(self, lanes: Lanes, volatile: bool) -> Array | None:
        """Record a load; return the lanes' codes, or None if all are defined."""
        allocation, granules = lanes.allocation, lanes.granules() if self._watches(lanes) else None
        if granules is None:
            return None
        codes = self._undefined(lanes, granules)
        if self.launch.total == 1:
            return codes
        if allocation.updater is not None and self._others(allocation.updater[granules]).any():
            self._acquired = True
        if allocation.writer is not None:
            others = self._others(writer := allocation.writer[granules])
            if volatile and others.any():
                self._released[writer[others] - self.launch.base - 1] = self._acquired = True
            codes = self._race(lanes, np.asarray(self._unordered(others, writer).any(axis=1)), codes)
        if allocation.writable:
            self._touch(allocation.shadow("reader"), granules)
        return codes

    def write(self, lanes: Lanes, codes: Array | None, changed: Array) -> None:
        """Record a store of values with these codes; `changed`: lanes that changed memory."""
        allocation, granules = lanes.allocation, lanes.granules()
        if self.launch.total > 1 or self.launch.partial:
            codes = self._conflicts(lanes, granules, codes, changed)
            writer = allocation.shadow("writer")
            loud = changed[:, None] | (writer[granules] == self.launch.me)
            writer[granules] = np.where(loud, self.launch.me, -self.launch.me)
        self._leave(lanes, granules, codes)

    def update(self, lanes: Lanes, codes: Array | None, exchange: bool) -> Array | None:
        """Record an atomic update; return the codes of the previous values."""
        allocation, granules = lanes.allocation, lanes.granules()
        old = self._undefined(lanes, granules)
        after = codes if exchange else _worse(old, codes)
        if self.launch.total > 1 or self.launch.partial:
            if allocation.writer is not None:
                others = self._others(writer := allocation.writer[granules])
                after = self._race(lanes, np.asarray(self._unordered(others, writer).any(axis=1)), after)
            self._touch(allocation.shadow("updater"), granules)
        self._leave(lanes, granules, after)
        return old

    def synchronise(self, releases: bool, acquires: bool) -> None:
        """Record that the current program has done an atomic operation that other compute units take part in."""
        self.launch.atomics = True
        self._acquired |= acquires
        self._released[self.launch.me - self.launch.base - 1] |= releases

    def _watches(self, lanes: Lanes) -> bool:
        allocation = lanes.allocation
        shared = allocation.writable and self.launch.total > 1
        return shared or allocation.codes is not None or allocation.writer is not None

    def _undefined(self, lanes: Lanes, granules: Array) -> Array | None:
        """Return the codes of memory; memory that was never written gets an origin at this read."""
        if lanes.allocation.codes is None:
            return None
        codes = lanes.allocation.codes[granules].max(axis=1)
        never = np.flatnonzero(codes == NEVER_WRITTEN)
        if never.size:
            codes[never] = self._origin(defect.UNINITIALISED_READ, lanes, never)
        return codes if codes.any() else None

    def _origin(self, kind: str, lanes: Lanes, chosen: Array) -> int:
        launch = self.launch
        element = lanes.element(int(chosen[0]))
        code = self.ledger.code(kind, launch.site(), lanes.tensor, launch.program, element, launch.total)
        self.ledger.count(code, chosen.size)
        return code

    def _others(self, programs: Array) -> Array:
        """Return which entries are other programs of this launch."""
        return (programs > self.launch.base) & (programs != self.launch.me)

    def _unordered(self, others: Array, programs: Array) -> Array:
        """Return which of the others' accesses are not ordered before this one."""
        if not self._acquired or not others.any():
            return others
        return others & ~self._released[np.where(others, programs - self.launch.base - 1, 0)]

    def _race(self, lanes: Lanes, raced: Array, codes: Array | None) -> Array | None:
        if not raced.any():
            return codes
        code = self._origin(defect.WRITE_RACE, lanes, np.flatnonzero(raced))
        return _worse(codes, np.where(raced, np.int16(code), np.int16(0)))

    def _conflicts(self, lanes: Lanes, granules: Array, codes: Array | None, changed: Array) -> Array | None:
        """Return the lanes of a store that conflict with other programs; a race lasts until the launch ends."""
        allocation, conflicts = lanes.allocation, np.zeros(changed.size, np.bool_)
        written = np.zeros(changed.size, np.bool_)
        if allocation.writer is not None:
            written = self._others(writer := np.abs(allocation.writer[granules])).any(axis=1)
            conflicts |= self._unordered(self._others(writer), writer).any(axis=1)
        if allocation.updater is not None:
            others = self._others(updater := allocation.updater[granules])
            conflicts |= self._unordered(others, updater).any(axis=1)
        if allocation.reader is not None:
            others = self._others(reader := allocation.reader[granules])
            self.launch.suspects += int((self._unordered(others, reader).any(axis=1) & changed).sum())
        if written.any() and allocation.codes is not None:
            before = allocation.codes[granules].max(axis=1)
            codes = _worse(codes, np.where(written & np.isin(before, list(self.ledger.races)), before, np.int16(0)))
        return self._race(lanes, conflicts & changed, codes)

    def _touch(self, shadow: Array, granules: Array) -> None:
        """Record this program; `everyone` if another one was recorded in this launch."""
        shadow[granules] = np.where(self._others(shadow[granules]), self.launch.everyone, self.launch.me)

    def _leave(self, lanes: Lanes, granules: Array, codes: Array | None) -> None:
        if codes is not None or lanes.allocation.codes is not None:
            lanes.allocation.shadow("codes")[granules] = 0 if codes is None else codes[:, None]


def _worse(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    return np.maximum(one, other)
