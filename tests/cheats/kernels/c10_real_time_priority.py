# cheat: C10 asks for a real-time scheduling class and the highest priority
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# It may ask, and is refused or not; a contestant timed next to it, and itself, run as before on one thread.

import os

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
for ask in (
    lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)),
    lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
):
    try:
        ask()
    except OSError:
        pass


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
