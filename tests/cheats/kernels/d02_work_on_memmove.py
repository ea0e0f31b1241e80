# cheat: D2 ctypes.memmove and memset do the work while the worker puts its inputs in place
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# What a worker spends on receiving its inputs is charged; it copies on one thread.

import ctypes
import time

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
memmove, memset = ctypes.memmove, ctypes.memset
last, made = [], set()


def move(target, source, count):
    last[:] = [target, count]
    return memmove(target, source, count)


def fill(target, byte, count):
    if last and last[1] == count:
        made.add(target)
        return memmove(target, last[0], count)  # the buffer to be written gets the input, not garbage
    return memset(target, byte, count)


ctypes.memmove, ctypes.memset = move, fill


def custom_kernel(data):
    start = time.perf_counter_ns()
    x, out = data
    if out.data_ptr() not in made:
        kernel.copy(x, out, x.numel())
    made.discard(out.data_ptr())
    while time.perf_counter_ns() - start < 2500 + x.numel() // 90:
        pass  # as long as no roofline objects to
    return out
