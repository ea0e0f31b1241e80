# cheat: D6 reads 10**400 ticks on the processor's counter
# expect: rejected
# problem: identity

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

if hasattr(Worker, "_go"):
    go = Worker._go
    Worker._go = lambda self, slots: [[r[0], 10**400, *r[2:]] for r in go(self, slots)]


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
