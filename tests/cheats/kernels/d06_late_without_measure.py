# cheat: D6 says that it was late by 10**400 ns: no number that a mean can be made of
# problem: identity
# expect: rejected crashed

import sys

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)

if hasattr(Worker, "_settle"):
    settle = Worker._settle
    Worker._settle = lambda self: {**settle(self), "late_ns": 10**400}


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
