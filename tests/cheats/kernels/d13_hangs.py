# cheat: D13 sleeps on large sizes, in the hope that a timed-out case is left out
# problem: identity
# expect: timeout

import time

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def custom_kernel(data):
    x, out = data
    if x.numel() > 100_000:
        time.sleep(30)
    kernel.copy(x, out, x.numel())
    return out
