"""Follows undefined values through an interpreted kernel: which lanes of a result depend on them.

A handle with undefined lanes carries their codes (`Ledger.code`) in addition to its data. A result has the union of its
operands' codes, except where a defined operand alone determines it (`where`, `and`, `or`, an integer times 0); a dot
passes codes on per row and column. In unknown operations lanes count as defined, so defects may be missed but none is
invented. Imports only numpy and triton.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from triton.runtime import interpreter as _interpreter_module

interpreter: Any = _interpreter_module
Array = np.ndarray[Any, Any]
Handle = Any
Operation = Callable[..., Any]
KEY = "undefined"

MOVING = frozenset(("reshape", "trans", "expand_dims", "broadcast", "splat", "unsplat", "cat", "join", "split"))
"""Operations that only move lanes: applied to the codes as to the data."""
OPAQUE = frozenset((
    *("load", "store", "masked_load", "masked_store", "tensor_pointer_load", "tensor_pointer_store", "atomic_rmw"),
    *("atomic_cas", "descriptor_load", "descriptor_store", "descriptor_gather", "descriptor_scatter", "print"),
    *("assert", "assume", "barrier", "make_block_ptr", "advance", "make_tensor_descriptor", "get_program_id"),
    *("get_num_programs", "make_range", "histogram"),
))  # fmt: skip
"""Memory operations, which `accesses` handles, and operations without lanes."""


def codes_of(handle: Handle) -> Array | None:
    """Return the codes of a handle's lanes, or None if all are defined."""
    attributes = getattr(handle, "attr", None)
    return attributes.get(KEY) if attributes else None


def mark(handle: Handle, codes: Array | None) -> None:
    """Attach codes to a handle if any is not 0 and the shapes agree."""
    if codes is None or not codes.any():
        return
    try:
        handle.attr[KEY] = np.broadcast_to(codes, handle.data.shape)
    except ValueError:
        return


def following() -> dict[str, Operation]:
    """Return the builder's operations, each wrapped to pass codes on."""
    builder = interpreter.InterpreterBuilder
    wrapped: dict[str, Operation] = {}
    for name in dir(builder):
        short = name.removeprefix("create_")
        if short != name and short not in OPAQUE and callable(getattr(builder, name)):
            wrapped[name] = _wrapped(getattr(builder, name), short)
    return wrapped


def following_reductions() -> Operation:
    """Return `apply` of the interpreter's reductions and scans, wrapped in the same way."""
    original = interpreter.ReduceScanOpInterface.apply

    @functools.wraps(original)
    def apply(self: Any, input: Any) -> Any:
        result = original(self, input)
        inputs = input if isinstance(input, tuple) else (input,)
        if (codes := _union(*(each.handle for each in inputs))) is not None:
            reduced = _reduced(self, np.broadcast_to(codes, inputs[0].handle.data.shape))
            for each in result if isinstance(result, tuple) else (result,):
                mark(each.handle, reduced)
        return result

    return apply


def _wrapped(original: Operation, name: str) -> Operation:
    rule = RULES.get(name, _union)

    @functools.wraps(original)
    def operation(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if any(arg.attr and KEY in arg.attr for arg in _handles(args)):
            if name in MOVING:
                _moved(original, self, args, result)
            else:
                mark(result, rule(*args))
        return result

    return operation


def _handles(args: Any) -> Iterator[Handle]:
    for arg in args:
        if isinstance(arg, interpreter.TensorHandle):
            yield arg
        elif isinstance(arg, list | tuple):
            yield from _handles(arg)


def _moved(original: Operation, builder: Any, args: tuple[Any, ...], result: Any) -> None:
    """Apply the operation to the codes."""
    shadows = [_shadow(arg) if isinstance(arg, interpreter.TensorHandle) else arg for arg in args]
    moved = original(builder, *shadows)
    for one, codes in zip(_handles([result]), _handles([moved]), strict=True):
        mark(one, codes.data)


def _shadow(handle: Handle) -> Handle:
    codes = codes_of(handle)
    data = np.zeros(handle.data.shape, np.int16) if codes is None else codes
    return interpreter.TensorHandle(data, interpreter.tl.int16)


def _union(*args: Any) -> Array | None:
    found: Array | None = None
    for handle in _handles(args):
        if (codes := codes_of(handle)) is not None:
            try:
                found = codes if found is None else np.maximum(found, codes)
            except ValueError:
                return None
    return found


def _given(handle: Handle) -> Array:
    codes = codes_of(handle)
    return np.zeros(1, np.int16) if codes is None else codes


def _select(condition: Handle, left: Handle, right: Handle) -> Array:
    chosen = np.where(condition.data, _given(left), _given(right))
    return np.maximum(chosen, _given(condition))


def _or(left: Handle, right: Handle) -> Array:
    return _decided(left, right, True if left.data.dtype == np.bool_ else -1)


def _decided(left: Handle, right: Handle, value: Any) -> Array:
    """Return the union of codes, but defined where a defined operand alone determines the result."""
    a, b = _given(left), _given(right)
    decided = ((a == 0) & (left.data == value)) | ((b == 0) & (right.data == value))
    return np.where(decided, np.int16(0), np.maximum(a, b))


def _dot(a: Handle, b: Handle, d: Handle, *_: Any) -> Array:
    rows = np.broadcast_to(_given(a), a.data.shape).max(axis=-1)[..., :, None]
    columns = np.broadcast_to(_given(b), b.data.shape).max(axis=-2)[..., None, :]
    return np.maximum(np.maximum(rows, columns), _given(d))


def _gather(source: Handle, indices: Handle, axis: int) -> Array:
    codes = np.broadcast_to(_given(source), source.data.shape)
    return np.maximum(np.take_along_axis(codes, indices.data, axis=axis), _given(indices))


def _reduced(operation: Any, codes: Array) -> Array:
    if not isinstance(operation, interpreter.ScanOps):
        reduced = np.max(codes, axis=operation.axis, keepdims=operation.keep_dims)
        return np.atleast_1d(reduced)
    if operation.reverse:
        codes = np.flip(codes, axis=operation.axis)
    running = np.maximum.accumulate(codes, axis=operation.axis)
    return np.flip(running, axis=operation.axis) if operation.reverse else running


RULES: dict[str, Callable[..., Array | None]] = {
    "select": _select,
    "and": functools.partial(_decided, value=0),
    "or": _or,
    "mul": functools.partial(_decided, value=0),
    "dot": _dot,
    "gather": _gather,
}
"""Operations whose codes are not the union over the operands."""
