# cheat: C6 time.perf_counter_ns runs slowly while the kernel does
# expect: rejected
# problem: identity
# Clocks inside the worker decide nothing: the judge's own count, and the kernel copies on one thread.

import time

# include: copy

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
