# cheat: D6 describes its output without the order of its dimensions
# problem: identity
# expect: rejected incorrect crashed

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

if hasattr(Worker, "_fetch"):
    fetch = Worker._fetch

    def described(self, slot, out):
        d = fetch(self, slot, out)
        d.pop("order")
        return d

    Worker._fetch = described


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
