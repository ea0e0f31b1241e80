# cheat: D13 takes memory that counts as nobody's: shared pages, beyond its limit
# problem: identity
# expect: ok rejected crashed timeout
# Shared pages count too: as address space, with a gigabyte to spare for what threads and allocators reserve.

import mmap

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)

held = []


def custom_kernel(data):
    x, out = data
    if not held:  # half as much again as is allowed where this is tried: 1 GiB
        held.append(mmap.mmap(-1, 3 << 29))
        for i in range(0, 3 << 29, 4096):
            held[0][i] = 1
        held.append(True)
    kernel.copy(x, out, x.numel())
    return out
