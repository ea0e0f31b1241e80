# variant: d13_raises | D13 raises on large sizes, in the hope that a failed case is left out | raise RuntimeError("out of resources")
# variant: d13_segfaults | D13 segfaults on large sizes | ctypes.string_at(8)
# variant: d13_out_of_memory | D13 asks for more memory than there is on large sizes | raise MemoryError if np.empty(1 << 46, dtype=np.int8).size else RuntimeError
# problem: identity
# expect: crashed

import ctypes

import numpy as np

# include: copy


def custom_kernel(data):
    x, out = data
    if x.numel() > 100_000:
        $VARIANT
    kernel.copy(x, out, x.numel())
    return out
