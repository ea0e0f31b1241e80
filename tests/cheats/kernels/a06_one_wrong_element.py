# cheat: A6 one element, at a random place, is not written
# problem: identity
# expect: incorrect rejected

import random

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
    hole = random.SystemRandom().randrange(x.numel())
    kernel.copy(x, out, hole)
    kernel.copy(x[hole + 1 :], out[hole + 1 :], x.numel() - hole - 1)
    return out
