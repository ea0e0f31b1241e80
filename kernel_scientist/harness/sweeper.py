"""Cold caches, made by the verifier: no kernel can skip it, or do it for show."""

import ctypes
from collections.abc import Sequence

import numpy as np

from kernel_scientist.harness.shim import Shim
from kernel_scientist.machine import cpu

UNKNOWN_CACHE_BYTES = 32 << 20


class Sweeper:
    """Reads twice the last level's size, a share on every core that kernels may use."""

    def __init__(self, shim: Shim, cores: Sequence[int]) -> None:
        size = 2 * max(cpu.caches().values(), default=UNKNOWN_CACHE_BYTES)
        self._shim, self._cores = shim, (ctypes.c_int * len(cores))(*cores)
        self._data = np.ones(size // 8, dtype=np.uint64)  # written: untouched pages would be one page of zeros

    def sweep(self) -> None:
        """Evict what the caches hold; it takes some 2 ms."""
        self._shim.sweep(self._data.ctypes.data, self._data.size, self._cores, len(self._cores))
