"""The names of kernels as their source says them, from the symbols of the Itanium C++ ABI.

Runs in workers as well: standard library only.
"""

import ctypes
import functools
import re
from collections import Counter
from collections.abc import Sequence

_ANONYMOUS = "(anonymous namespace)::"
_OPEN, _CLOSE = "<([{", ">)]}"


def plain(mangled: Sequence[str]) -> dict[str, str]:
    """Return each symbol's shortest name that tells it from the others.

    That is `gemm`, else `gemm<float, 64>`, else `void gemm<float, 64>(float*)`, else the symbol.
    """
    result = dict(zip(mangled, mangled, strict=True))
    for names in zip(*map(_names, mangled), strict=True):  # from the longest on
        count = Counter(names)
        result |= {symbol: name for symbol, name in zip(mangled, names, strict=True) if count[name] == 1}
    return result


@functools.lru_cache(maxsize=1 << 10)
def _names(symbol: str) -> tuple[str, str, str]:
    """Return a symbol's signature, its name with template arguments, and its name."""
    signature = _demangled(symbol).replace(_ANONYMOUS, "")
    if signature == symbol:
        return symbol, symbol, symbol
    outside = _outside(signature)
    end = outside.find("(") if "(" in outside else len(signature)
    begin = outside.rfind(" ", 0, end) + 1
    name = "".join(c for c in outside[begin:end] if c not in "<>\0")
    return signature, signature[begin:end], name


def _outside(text: str) -> str:
    """Return a text with a NUL for each character within brackets."""
    result, depth = list[str](), 0
    for character in text:
        depth -= character in _CLOSE
        result.append("\0" if depth > 0 else character)
        depth += character in _OPEN
    return "".join(result)


def _demangled(symbol: str) -> str:
    """Return what the C++ library makes of a symbol; the symbol where it is none, or there is no such library."""
    library = _library()
    if library is None or not re.fullmatch(r"_Z[\w.$]+", symbol, re.ASCII):
        return symbol
    status = ctypes.c_int()
    address = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    if not address:
        return symbol
    text = ctypes.string_at(address).decode(errors="replace")
    library.free(ctypes.c_void_p(address))
    return text


@functools.cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libstdc++.so.6")  # torch has loaded it, or any compiler brought it along
        library.__cxa_demangle.restype = ctypes.c_void_p
    except (OSError, AttributeError):
        return None
    return library
