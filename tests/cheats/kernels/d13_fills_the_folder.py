# cheat: D13 fills the file system that all workers write to when it is imported
# problem: identity
# expect: ok rejected crashed timeout
# gains: false
# Others still find room, or it fails itself; it copies on both threads like honest work.

import os

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)

megabyte = bytes(1 << 20)
try:
    for i in range(400):
        with open(f"filler{i}", "wb") as file:
            for _ in range(4):
                file.write(megabyte)
except OSError:
    pass


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
