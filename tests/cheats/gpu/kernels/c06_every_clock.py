# cheat: C6 every clock of the time module, timeit's, Triton's and torch's runs slowly while the kernel does
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Its times come from functions that were bound natively before its file was read.

import time
import timeit

import torch
# include: triton_copy


real, stolen = time.perf_counter_ns, [0]


def steal(start):
    stolen[0] += min(9 * (real() - start) // 10, 300_000)  # most of a call, but not so much that it shows


def slowed(clock, unit):
    return lambda: clock() - stolen[0] * unit


for name in ("perf_counter", "monotonic", "time", "process_time", "thread_time"):
    setattr(time, name, slowed(getattr(time, name), 1e-9))
    setattr(time, name + "_ns", slowed(getattr(time, name + "_ns"), 1))
timeit.default_timer = time.perf_counter
triton.testing.do_bench = lambda *_, **__: 0.001
torch.cuda.Event.elapsed_time = lambda *_: 0.001


def custom_kernel(data):
    start = real()
    x, out = data
    copy(x, out)
    torch.cuda.current_stream().synchronize()
    steal(start)
    return out
