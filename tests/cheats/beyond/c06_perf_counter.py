# cheat: C6 time.perf_counter_ns runs slowly while the kernel does
# expect: rejected
# problem: identity
# Clocks inside the worker decide nothing: the judge's own count, and the kernel copies on one thread.

import time

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])

real, stolen = time.perf_counter_ns, [0]


def steal(start):
    stolen[0] += min(9 * (real() - start) // 10, 300_000)  # most of a call, but not so much that it shows


time.perf_counter_ns = lambda: real() - stolen[0]


def custom_kernel(data):
    start = real()
    x, out = data
    kernel.copy(x, out, x.numel())
    steal(start)
    return out
