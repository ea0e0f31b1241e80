"""Makes Triton's interpreter exact: `install()` replaces operations that are wrong for bf16 and fp8, or missing.

Triton 3.7's interpreter (`triton/runtime/interpreter.py`) holds bf16 and fp8 as integers and computes on those: a bf16
`+` adds bit patterns, `tl.dot` multiplies them, `tl.sum` adds them up; fp32 is truncated to bf16; fp8e4b8 and fp8e5b16
(e4m3fnuz, e5m2fnuz) are refused. Here every operation widens to fp32, computes and rounds once to nearest even, as
the AMD backend's generated code does; values that are too large are treated as on gfx942 (see `dtypes`).

More exact than a device: reductions and dots accumulate in fp32 (a device may round a bf16 `tl.sum` after each step),
fma is computed in fp64, `input_precision` is ignored. Imports only numpy, torch and triton; nothing outside the
interpreter is changed.
"""

import dataclasses
import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import triton.language as tl

from tests.interpreter import dot, libdevice
from tests.interpreter.dot import interpreter
from tests.interpreter.dtypes import PACKED, Array, narrow, widen

Handle = Any
"""An interpreter's TensorHandle: `.data` is a numpy array, `.dtype` Triton's type."""

_MARK = "_exact_numerics"


def install() -> None:
    """Make the interpreter exact. Compiled kernels are not affected. Calling it again has no effect."""
    builder = interpreter.InterpreterBuilder
    if getattr(builder, _MARK, False):
        return
    setattr(builder, _MARK, True)
    for name, function in _BUILDER.items():
        setattr(builder, name, function)
    for cls, name in ((interpreter.ReduceOps, "sum"), (interpreter.ReduceOps, "min_max")):
        setattr(cls, name, _widened(getattr(cls, name)))
    for name in ("cumsum", "cumprod"):
        setattr(interpreter.ScanOps, name, _widened(getattr(interpreter.ScanOps, name)))
    builder.create_atomic_rmw = _atomic(builder.create_atomic_rmw)
    interpreter._get_np_dtype = _remembered(interpreter._get_np_dtype)
    interpreter._patch_lang_core = _knowing_fnuz(interpreter._patch_lang_core)
    interpreter._patch_lang_tensor = _with_index(interpreter._patch_lang_tensor)
    semantic = type(interpreter.interpreter_semantic)  # Triton 3.6 makes another one for every patched function
    semantic.dot_scaled = dot.taking_words(semantic.dot_scaled)
    libdevice.install(interpreter.interpreter_semantic)
    interpreter._patch_lang = _patching_all(interpreter._patch_lang)
    interpreter.InterpretedFunction.__call__ = _device_function
    # without `debug` Triton computes this check and drops its result: 40 % of the interpreter's time
    own = interpreter.interpreter_builder
    own.options = dataclasses.replace(own.options, sanitize_overflow=False)


def _patching_all(patch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that patches both of the language's modules, whichever a kernel has imported."""

    def both() -> None: ...

    language = FunctionType(both.__code__, {"tl": tl, "core": tl.core})
    return lambda kernel: patch(language)


def _device_function(function: Any, *args: Any, **options: Any) -> Any:
    """Call a function from within a kernel. Triton would patch its language each time: a fifth of the time."""
    try:
        return function.rewrite()(*args, **options)
    except Exception as error:
        raise interpreter.InterpreterError(repr(error)) from error


def _remembered(np_dtype: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return numpy's type for a type, by its element's name: Triton's function builds a table at each call."""
    known: dict[str, Any] = {}

    def quick(dtype: Any) -> Any:
        name = dtype.scalar.name
        if name not in known:
            known[name] = np_dtype(dtype)
        return known[name]

    return quick


def _handle(data: Array, dtype: Any) -> Handle:
    return interpreter.TensorHandle(data, dtype.scalar)


def _wide(handle: Handle) -> Array:
    """Return a handle's values: bf16 and fp8 as fp32."""
    return widen(handle.data, handle.dtype.scalar.name)


def _result(values: Array, dtype: Any) -> Handle:
    """Round a result to its type in Triton; the result of a comparison is int1."""
    scalar = dtype.scalar
    if values.dtype == np.bool_:
        return _handle(values, tl.int1)
    if scalar.name in PACKED:
        return _handle(narrow(values, scalar.name), scalar)
    if not interpreter._validate_np_data_size(values, scalar):
        values = values.astype(interpreter._get_np_dtype(scalar))
    return _handle(values, scalar)


def _binary(self: Any, lhs: Handle, rhs: Handle, op: Callable[..., Array]) -> Handle:
    with np.errstate(all="ignore"):
        return _result(op(_wide(lhs), _wide(rhs)), lhs.dtype)


def _ternary(self: Any, lhs: Handle, rhs: Handle, other: Handle, op: Callable[..., Array]) -> Handle:
    if op is np.where:  # selects values; computes nothing
        return _handle(np.where(lhs.data, rhs.data, other.data), other.dtype)
    return _result(op(_wide(lhs), _wide(rhs), _wide(other)), other.dtype)


def _unary(self: Any, arg: Handle, op: Callable[..., Array]) -> Handle:
    with np.errstate(all="ignore"):
        return _result(op(_wide(arg)), arg.dtype)


def _maxnum(self: Any, lhs: Handle, rhs: Handle) -> Handle:
    return self.binary_op(lhs, rhs, np.fmax)


def _minnum(self: Any, lhs: Handle, rhs: Handle) -> Handle:
    return self.binary_op(lhs, rhs, np.fmin)


def _clamp(self: Any, arg: Handle, low: Handle, high: Handle, propagate_nans: Any) -> Handle:
    every = propagate_nans == interpreter._ir.PROPAGATE_NAN.ALL
    least, most = (np.minimum, np.maximum) if every else (np.fmin, np.fmax)

    def clamp(x: Array, lowest: Array, highest: Array) -> Array:
        return least(most(x, lowest), highest)

    return _ternary(self, arg, low, high, clamp)


def _fma(self: Any, x: Handle, y: Handle, z: Handle) -> Handle:
    """Return x * y + z with an exact product: in fp64 the product of two fp32 values is exact."""
    if x.data.dtype.kind in "iu" and x.dtype.scalar.name not in PACKED:
        return _handle(x.data * y.data + z.data, z.dtype)
    values = _wide(x).astype(np.float64) * _wide(y).astype(np.float64) + _wide(z)
    return _handle(narrow(values, z.dtype.scalar.name), z.dtype)


def _rsqrt(self: Any, arg: Handle) -> Handle:
    with np.errstate(all="ignore"):
        return _handle((1 / np.sqrt(arg.data.astype(np.float64))).astype(arg.data.dtype), arg.dtype)


def _library(self: Any, name: str, path: str, symbol: str, args: list[Handle], kind: Any, is_pure: bool) -> Handle:
    values = libdevice.evaluate(symbol, [arg.data for arg in args], interpreter._get_np_dtype(kind))
    return _handle(values, kind)


def _erf(self: Any, arg: Handle) -> Handle:
    return _handle(libdevice.evaluate("__ocml_erf_f64", [arg.data], arg.data.dtype), arg.dtype)


def _cast(self: Any, src: Handle, dst_type: Any) -> Handle:
    """Convert between any two types; narrowing rounds to nearest even."""
    return _converted(src, dst_type, to_zero=False)


def _fp_to_fp(self: Any, src: Handle, dst_type: Any, rounding_mode: Any) -> Handle:
    return _converted(src, dst_type, rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ)


def _converted(src: Handle, dst_type: Any, to_zero: bool) -> Handle:
    target = dst_type.scalar
    values = _wide(src)
    if not target.is_floating():
        with np.errstate(invalid="ignore"):
            return _handle(values.astype(interpreter._get_np_dtype(dst_type)), target)
    if values.dtype.kind != "f":  # an integer: to fp32 first, as the AMD backend does for bf16
        values = values.astype(np.float64 if target.name == "fp64" else np.float32)
    return _handle(narrow(values, target.name, to_zero), target)


def _bf16(self: Any, value: float) -> Handle:
    return _handle(narrow(np.array([value], dtype=np.float32), "bf16"), tl.bfloat16)


def _widened(original: Callable[..., Any]) -> Callable[..., Any]:
    """Reduce or scan bf16 and fp8 as fp32, and round the result."""

    @functools.wraps(original)
    def reduce(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        first = input[0] if isinstance(input, tuple) else input
        dtype = first.dtype.scalar
        if dtype.name not in PACKED:
            return original(self, input, *args, **kwargs)
        wide = self.to_tensor(_wide(first.handle), tl.float32)
        return _rounded(self, original(self, wide, *args, **kwargs), dtype)

    return reduce


def _rounded(ops: Any, found: Any, dtype: Any) -> Any:
    if isinstance(found, list | tuple):
        return type(found)(_rounded(ops, each, dtype) for each in found)
    if not found.dtype.is_floating():  # an index
        return found
    return tl.core.tensor(
        _result(found.handle.data, dtype), found.type.with_element_ty(dtype) if found.type.is_block() else dtype
    )


def _atomic(original: Callable[..., Handle]) -> Callable[..., Handle]:
    """Perform atomics that the interpreter lacks: add 16-bit floats lane by lane, exchange floats as bits."""

    @functools.wraps(original)
    def atomic(self: Any, op: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any) -> Handle:
        name = val.dtype.scalar.name
        if op == interpreter._ir.ATOMIC_OP.XCHG and val.data.dtype.kind == "f":
            bits = _handle(val.data.view(f"u{val.data.itemsize}"), getattr(tl, f"uint{val.data.itemsize * 8}"))
            old = original(self, op, ptr, bits, mask, sem, scope)
            return _handle(old.data.view(val.data.dtype), val.dtype)
        if op != interpreter._ir.ATOMIC_OP.FADD or name not in ("bf16", "fp16"):
            return original(self, op, ptr, val, mask, sem, scope)
        return _handle(_add_in_turn(ptr.data, val.data, mask.data, name), val.dtype)

    return atomic


def _add_in_turn(addresses: Array, values: Array, mask: Array, name: str) -> Array:
    addresses, values, mask = (np.ascontiguousarray(x) for x in np.broadcast_arrays(addresses, values, mask))
    old = np.zeros(values.shape, values.dtype)
    turn = _turns(addresses, mask)
    for now in range(int(turn.max(initial=-1)) + 1):
        lanes = turn == now
        here = interpreter._interpreter.load(addresses, lanes, np.zeros_like(values), values.dtype)
        total = widen(here, name).astype(np.float32) + widen(values, name).astype(np.float32)
        interpreter._interpreter.store(addresses, narrow(total, name), lanes)
        old[lanes] = here[lanes]
    return old


def _turns(addresses: Array, mask: Array) -> Array:
    """Number the active lanes of each address: 0 for the first, 1 for the second; -1 for inactive lanes."""
    turn = np.full(addresses.size, -1)
    active = np.flatnonzero(mask)
    order = active[np.argsort(addresses.ravel()[active], kind="stable")]
    _, first, count = np.unique(addresses.ravel()[order], return_index=True, return_counts=True)
    turn[order] = np.arange(order.size) - np.repeat(first, count)
    return turn.reshape(addresses.shape)


def _knowing_fnuz(original: Callable[..., None]) -> Callable[..., None]:
    """Add the types e4m3fnuz and e5m2fnuz, which are missing from the interpreter's table of types."""

    @functools.wraps(original)
    def patch(lang: Any, scope: Any) -> None:
        original(lang, scope)
        known = lang.dtype.to_ir

        def to_ir(self: Any, builder: Any) -> Any:
            missing = {"fp8e4b8": builder.get_fp8e4b8_ty, "fp8e5b16": builder.get_fp8e5b16_ty}
            return missing[self.name]() if self.name in missing else known(self, builder)

        scope.set_attr(lang.dtype, "to_ir", to_ir)

    return patch


def _with_index(original: Callable[..., None]) -> Callable[..., None]:
    """Let a scalar, an array of one element, be a loop's bound: Triton 3.6 leaves that to numpy, which refuses from 2.5
    on."""

    @functools.wraps(original)
    def patch(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", index)

    def index(self: Any) -> int:
        return self.handle.data.item().__index__()

    return patch


_BUILDER: dict[str, Callable[..., Handle]] = {
    "binary_op": _binary,
    "unary_op": _unary,
    "ternary_op": _ternary,
    "cast_impl": _cast,
    "create_fp_to_fp": _fp_to_fp,
    "create_maxnumf": _maxnum,
    "create_minnumf": _minnum,
    "create_clampf": _clamp,
    "create_fma": _fma,
    "create_rsqrt": _rsqrt,
    "create_erf": _erf,
    "create_dot": dot.dot,
    "create_dot_scaled": dot.dot_scaled,
    "create_extern_elementwise": _library,
    "get_bf16": _bf16,
}
