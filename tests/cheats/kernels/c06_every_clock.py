# cheat: C6 every clock of the time module, and timeit's and torch's, runs slowly while the kernel does
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Clocks inside the worker decide nothing: the judge's own count, and the kernel copies on one thread.

import time
import timeit

import torch

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


def slowed(clock, unit):
    return lambda: clock() - stolen[0] * unit


for name in ("perf_counter", "monotonic", "time", "process_time", "thread_time"):
    setattr(time, name, slowed(getattr(time, name), 1e-9))
    setattr(time, name + "_ns", slowed(getattr(time, name + "_ns"), 1))
timeit.default_timer = time.perf_counter
torch.cuda.Event.elapsed_time = lambda *_: 0.001
torch.cuda.synchronize = lambda *_: None


def custom_kernel(data):
    start = real()
    x, out = data
    kernel.copy(x, out, x.numel())
    steal(start)
    return out
