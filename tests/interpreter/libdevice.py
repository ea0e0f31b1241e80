"""`tl.extra.libdevice` for Triton's interpreter, which lacks it: ROCm's and CUDA's elementwise functions in numpy.

A kernel calls them through `triton.language.extra.libdevice` (stubs that the compiler maps to a target's functions),
`.hip` or `.cuda`. Values are computed in fp64 and rounded once, so they are at least as exact as the device's. Imports
only numpy, torch and triton.
"""

import functools
import importlib
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

_MODULES = ("hip.libdevice", "cuda.libdevice", "libdevice")
_MARK = "interpretable"


def _torch(function: Function) -> Function:
    """Wrap a torch function for numpy arrays."""
    return lambda *xs: function(*(torch.from_numpy(np.ascontiguousarray(x)) for x in xs)).numpy()


def _half_away(x: Array) -> Array:
    return np.trunc(x + np.copysign(0.5, x))


_ONE: dict[str, Callable[[Any], Any]] = {
    "rint": np.rint,
    "nearbyint": np.rint,
    "llrint": np.rint,
    "round": _half_away,
    "llround": _half_away,
    "finite": np.isfinite,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcp": lambda x: 1 / x,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "exp10": lambda x: np.power(10.0, x),
    "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x),
    "saturate": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0, 1),
    "ilogb": lambda x: np.frexp(x)[1] - 1,
    "logb": lambda x: np.frexp(x)[1] - 1,
    "erf": _torch(torch.erf),
    "erfc": _torch(torch.erfc),
    "erfinv": _torch(torch.erfinv),
    "erfcx": _torch(torch.special.erfcx),
    "lgamma": _torch(torch.lgamma),
    "normcdf": _torch(torch.special.ndtr),
    "normcdfinv": _torch(torch.special.ndtri),
    "i0": _torch(torch.special.i0),
    "i1": _torch(torch.special.i1),
    "j0": _torch(torch.special.bessel_j0),
    "j1": _torch(torch.special.bessel_j1),
    "y0": _torch(torch.special.bessel_y0),
    "y1": _torch(torch.special.bessel_y1),
}
_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "atan2": np.arctan2,
    "scalbn": np.ldexp,
    "pow": np.power,
    "pown": np.power,
    "powi": np.power,
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "fdividef": np.divide,
    "fdiv": np.divide,
    "ddiv": np.divide,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
}
_THREE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fma": lambda x, y, z: x * y + z,
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
}
_NAMESAKES = (
    *("fabs", "floor", "ceil", "trunc", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "isnan", "isinf", "isfinite", "signbit"),
    *("fmod", "hypot", "copysign", "nextafter", "ldexp"),
)
_FLOATING: dict[str, Function] = {**{name: getattr(np, name) for name in _NAMESAKES}, **_ONE, **_TWO, **_THREE}

_WHOLE: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "iabs": np.abs,
    "llabs": np.abs,
    "popc": lambda x: sum((x.astype(np.int64) >> bit) & 1 for bit in range(x.itemsize * 8)),
}
_WHOLES: dict[str, Callable[[Any, Any], Any]] = {
    "mul24": lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF),
    "hadd": lambda x, y: (x.astype(np.int64) + y) >> 1,
    "rhadd": lambda x, y: (x.astype(np.int64) + y + 1) >> 1,
    "mulhi": lambda x, y: (x.astype(np.int64) * y.astype(np.int64)) >> 32,
}
_INTEGER: dict[str, Function] = {**_WHOLE, **_WHOLES}
_BITS: dict[str, Any] = {
    "float_as_int": np.int32,
    "float_as_uint": np.uint32,
    "int_as_float": np.float32,
    "uint_as_float": np.float32,
    "double_as_longlong": np.int64,
    "longlong_as_double": np.float64,
}


def stem(symbol: str) -> str:
    """Return the function's plain name: `__ocml_tanh_f32`, `__nv_fast_tanhf` and `__nv_tanh` are all `tanh`."""
    name = re.sub(r"^__(ocml|nv|triton_hip)_", "", symbol)
    name = re.sub(r"^cyl_bessel_", "", re.sub(r"(_f32|_f64|_f16|_r[nzdu])$", "", name))
    name = re.sub(r"^fast_", "", name)
    if name in _FLOATING or name in _INTEGER or name in _BITS:
        return name
    return re.sub(r"^[fd](?=(add|sub|mul|sqrt|rcp|rsqrt)$)", "", re.sub(r"[fd]$", "", name))


def evaluate(symbol: str, arguments: list[Array], result: Any) -> Array:
    """Apply a device library's function to arrays; the result has numpy's type `result`.

    Raises NotImplementedError with the symbol's name for an unknown one.
    """
    name = stem(symbol)
    if name in _BITS:
        return arguments[0].view(_BITS[name])
    integer = all(argument.dtype.kind in "iub" for argument in arguments)
    function = (_INTEGER if integer else _FLOATING).get(name)
    if function is None and name == "abs":
        function = np.abs
    if function is None:
        raise NotImplementedError(f"the interpreter has no {symbol}; write it with tl.math, or inspect without running")
    if not integer:
        arguments = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in arguments]
    with np.errstate(all="ignore"):
        return np.asarray(function(*arguments)).astype(result)


def install(semantic: Any) -> None:
    """Make the library's functions callable from interpreted kernels; compiled kernels are not affected."""
    modules = [importlib.import_module(f"triton.language.extra.{name}") for name in _MODULES]
    for module in modules[:2]:
        for name, function in _functions(module):
            setattr(module, name, _callable(function, function, semantic))
    for name, stub in _functions(modules[2]):
        real = next((getattr(m, name) for m in modules[:2] if hasattr(m, name)), None)
        if real is not None:
            setattr(modules[2], name, _callable(stub, real, semantic))


def _functions(module: ModuleType) -> list[tuple[str, Function]]:
    own = [(name, value) for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [(name, value) for name, value in own if callable(value) and not hasattr(value, _MARK)]


def _callable(face: Function, function: Function, semantic: Any) -> Function:
    """Return a function that calls `function` with the name and module of `face`, by which the compiler maps a stub."""

    @functools.wraps(face)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("_semantic") is None:
            kwargs["_semantic"] = semantic
        return function(*args, **kwargs)

    setattr(call, _MARK, True)
    return call
