# cheat: D13 asks for more memory than there is on large sizes
# problem: identity
# expect: crashed

import numpy as np

# include: copy


def custom_kernel(data):
    x, out = data
    if x.numel() > 100_000:
        raise MemoryError if np.empty(1 << 46, dtype=np.int8).size else RuntimeError
    kernel.copy(x, out, x.numel())
    return out
