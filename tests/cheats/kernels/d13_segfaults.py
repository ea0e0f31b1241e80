# cheat: D13 segfaults on large sizes
# problem: identity
# expect: crashed

import ctypes

# include: copy


def custom_kernel(data):
    x, out = data
    if x.numel() > 100_000:
        ctypes.string_at(8)
    kernel.copy(x, out, x.numel())
    return out
