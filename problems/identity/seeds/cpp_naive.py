"""Identity, naive: one element at a time."""

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    // @begin rows
    for (int64_t i = 0; i < size; ++i)
    // @end rows
        out[i] = x[i];
}
"""
FLAGS = ["-fno-tree-loop-distribute-patterns", "-fno-tree-vectorize"]  # else the compiler makes it a memcpy
kernel = load(SOURCE, flags=FLAGS)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
