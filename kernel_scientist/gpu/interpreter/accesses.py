"""Checks each memory operation of an interpreted kernel when the interpreter's builder executes it.

All loads and stores pass through here: plain pointers, block pointers and tensor descriptors all use the builder's
masked load and masked store. Lanes out of bounds are masked off, so nothing is read or written there. Masked-off lanes
without `other` get zero from the interpreter, as in Triton 3.7's code for gfx942 and sm_90; they count as undefined, as
Triton's documentation says. Imports only numpy and triton.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernel_scientist.gpu.interpreter import defect
from kernel_scientist.gpu.interpreter.addresses import ADDRESS, Addresses, Launch
from kernel_scientist.gpu.interpreter.defect import Array, Ledger
from kernel_scientist.gpu.interpreter.races import History
from kernel_scientist.gpu.interpreter.undefined import codes_of, interpreter, mark

Handle = Any
Operation = Callable[..., Any]


class Accesses:
    """Wraps the builder's memory operations while launches run."""

    def __init__(self, addresses: Addresses, history: History, ledger: Ledger) -> None:
        self.addresses, self.history, self.ledger = addresses, history, ledger

    @property
    def launch(self) -> Launch:
        """The current launch."""
        return self.history.launch

    def operations(self) -> dict[str, Operation]:
        """Return the builder's memory operations, each wrapped by its check."""
        checks = {
            "create_masked_load": self._load,
            "create_masked_store": self._store,
            "create_atomic_rmw": self._rmw,
            "create_atomic_cas": self._cas,
        }
        return {name: _before(getattr(interpreter.InterpreterBuilder, name), check) for name, check in checks.items()}

    def decide(self, handle: Handle) -> None:
        """Handle a scalar that decides a branch or a loop bound; races are ignored, as programs wait that way."""
        codes = codes_of(handle)
        if codes is not None and codes.size == 1 and int(codes.flat[0]) not in self.ledger.races:
            self.ledger.reach(codes)

    def _load(self, original: Operation, pointers: Handle, mask: Handle, other: Handle, *rest: Any) -> Handle:
        width = interpreter._get_np_dtype(pointers.get_element_ty()).itemsize
        active = self._active(pointers, mask)
        codes = self._switched_off(pointers, active, mask, other)
        for lanes in self.addresses.sort(self.launch, pointers.data, active, width, writes=False):
            if (found := self.history.read(lanes, volatile=bool(rest[2]))) is not None:
                codes = np.zeros(active.size, np.int16) if codes is None else codes
                codes[lanes.where] = np.maximum(codes[lanes.where], found)
        result = original(_plain(pointers), _flags(active), other, *rest)
        mark(result, None if codes is None else codes.reshape(active.shape))
        return result

    def _store(self, original: Operation, pointers: Handle, value: Handle, mask: Handle, *rest: Any) -> Any:
        active, codes = self._active(pointers, mask), self._value_codes(value, mask, pointers)
        width = value.data.dtype.itemsize
        found = self.addresses.sort(self.launch, pointers.data, active, width, writes=True)
        changed = self._changed(pointers, value, active)
        for lanes in found:
            own = None if codes is None else codes[lanes.where]
            self.history.write(lanes, own, changed[lanes.where])
        return original(_plain(pointers), value, _flags(active), *rest)

    def _rmw(self, original: Operation, kind: Any, pointers: Handle, value: Handle, mask: Handle, *rest: Any) -> Handle:
        exchange = kind == interpreter._ir.ATOMIC_OP.XCHG
        active, old = self._update(pointers, value, mask, exchange, rest)
        result = original(kind, _plain(pointers), value, _flags(active), *rest)
        mark(result, old)
        return result

    def _cas(self, original: Operation, pointers: Handle, expected: Handle, value: Handle, *rest: Any) -> Handle:
        every = _flags(np.ones(pointers.data.shape, np.bool_))
        active, old = self._update(pointers, value, every, False, rest)
        if not active.all():  # the operation has no mask: if a lane is out of bounds, it is skipped
            return interpreter.TensorHandle(expected.data.copy(), expected.dtype)
        result = original(_plain(pointers), expected, value, *rest)
        mark(result, old)
        return result

    def _update(
        self, pointers: Handle, value: Handle, mask: Handle, exchange: bool, order: Sequence[Any]
    ) -> tuple[Array, Array]:
        """Record an atomic update. `order`: its memory semantics and scope."""
        active, codes = self._active(pointers, mask), self._value_codes(value, mask, pointers)
        old, width = np.zeros(active.size, np.int16), value.data.dtype.itemsize
        for lanes in self.addresses.sort(self.launch, pointers.data, active, width, writes=True):
            own = None if codes is None else codes[lanes.where]
            if (found := self.history.update(lanes, own, exchange)) is not None:
                old[lanes.where] = found
        semantics, scope = (str(one.name) for one in order)
        if scope != "CTA":
            self.history.synchronise("RELEASE" in semantics, "ACQUIRE" in semantics)
        return active, old.reshape(active.shape)

    def _active(self, pointers: Handle, mask: Handle) -> Array:
        """Return the lanes that access memory; an undefined address in one of them is a defect."""
        active = np.array(np.broadcast_to(np.asarray(mask.data), pointers.data.shape), order="C")
        for codes in (codes_of(pointers), codes_of(mask)):
            if codes is not None:
                active &= codes != defect.UNKNOWN
        if (codes := codes_of(pointers)) is not None:
            self.ledger.reach(codes[active])
        return active

    def _switched_off(self, pointers: Handle, active: Array, mask: Handle, other: Handle) -> Array | None:
        """Return the flattened codes of a load's lanes that follow from its mask and `other`."""
        codes = codes_of(mask)
        found = None if codes is None else np.broadcast_to(codes, active.shape).flatten()
        if other is None and not active.all():
            off = ~active
            tensor, element = self.addresses.locate(self.launch, int(pointers.data[off][0]))
            where = self.launch.site(), tensor, self.launch.program, element, self.launch.total
            code = self.ledger.code(defect.MASK_MISTAKE, *where)
            self.ledger.count(code, int(off.sum()))
            return np.where(off.ravel(), np.int16(code), np.int16(0) if found is None else found)
        if other is not None and (given := codes_of(other)) is not None:
            given = np.where(active, np.int16(0), given).ravel()
            return given if found is None else np.maximum(found, given)
        return found

    def _value_codes(self, value: Handle, mask: Handle, pointers: Handle) -> Array | None:
        """Return the flattened codes of the stored values, including those of an undefined mask."""
        found = [
            np.broadcast_to(c, pointers.data.shape).ravel() for h in (value, mask) if (c := codes_of(h)) is not None
        ]
        return np.maximum.reduce(found) if found else None

    def _changed(self, pointers: Handle, value: Handle, active: Array) -> Array:
        """Return the flattened lanes of a store that change memory."""
        if self.launch.total == 1:
            return np.ones(active.size, np.bool_)
        dtype = value.data.dtype
        nothing = np.zeros(active.shape, dtype)
        there = interpreter._interpreter.load(pointers.data & ADDRESS, active, nothing, dtype)
        new = np.broadcast_to(np.ascontiguousarray(value.data), active.shape)
        bits = f"u{dtype.itemsize}"
        return (np.ascontiguousarray(there).view(bits) != np.ascontiguousarray(new).view(bits)).ravel()


def _before(original: Operation, check: Operation) -> Operation:
    def operation(builder: Any, *args: Any, **kwargs: Any) -> Any:
        names = ("cache_modifier", "eviction_policy", "is_volatile")  # descriptors pass these by name
        given = [*args, *(kwargs[name] for name in names if name in kwargs)]
        return check(functools.partial(original, builder), *given)

    return operation


def _plain(pointers: Handle) -> Handle:
    """Return the pointers without tags."""
    return interpreter.TensorHandle(pointers.data & ADDRESS, pointers.dtype)


def _flags(active: Array) -> Handle:
    return interpreter.TensorHandle(active, interpreter.tl.int1)
