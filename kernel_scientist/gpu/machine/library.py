"""The machine's native library (`build`): its functions, and the numbers of the rows of its table of instructions.

Runs in workers: standard library only.
"""

import ctypes
import functools
from pathlib import Path


def _declare_checks(native: ctypes.CDLL) -> None:
    size, pointer, word, wide = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    native.machine_check.argtypes = (*[pointer] * 5, size, *[pointer] * 6)
    native.machine_shadow.restype = pointer
    native.machine_shadow_free.argtypes = (pointer,)
    native.machine_shadow_poison.argtypes = (pointer, wide, wide, wide)
    native.machine_shadow_define.argtypes = (pointer, wide, wide)
    native.machine_shadow_settle.argtypes = (pointer, wide, wide, word)
    native.machine_shadow_set.argtypes = (pointer, wide, wide, pointer, word)
    native.machine_shadow_get.argtypes = (pointer, wide, wide, pointer, pointer)
    native.machine_shadow_reach.argtypes = (pointer, word, word)
    native.machine_shadow_records.argtypes = (pointer, pointer, size)
    native.machine_shadow_records.restype = size


class Library:
    """The functions of the native library, and the numbers of the rows of its table by mnemonic."""

    def __init__(self, path: Path) -> None:
        native = ctypes.CDLL(str(path))
        native.machine_row.restype = ctypes.c_char_p
        native.machine_load.restype = ctypes.c_void_p
        native.machine_load.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        native.machine_free.argtypes = (ctypes.c_void_p,)
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        native.machine_run.argtypes = (pointer, pointer, pointer, size, pointer, pointer, pointer, size, pointer)
        self.load, self.free, self.run = native.machine_load, native.machine_free, native.machine_run
        self.native = native
        _declare_checks(native)
        self.packed_bytes: int = native.machine_packed_bytes()
        self.order_bytes: int = native.machine_order_bytes()
        self.rows = {native.machine_row(n).decode(): n for n in range(native.machine_rows())}


@functools.cache
def loaded(path: Path) -> Library:
    """Return the library of a file."""
    return Library(path)
