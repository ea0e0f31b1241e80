# cheat: C9 reports the least that no check objects to where a call is short, and the truth where it is long
# expect: rejected
# problem: identity
# No more may be hidden than the clocks' noise; it copies on both threads like honest work.

import sys

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)
worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)

if hasattr(Worker, "_go"):
    go = Worker._go

    def least(self, slots):
        readings = []
        for slot, (ns, ticks, *rest) in zip(slots, go(self, slots), strict=True):
            said = max(1, self.data[slot][0].numel() // 100) if ns < 55_000 and len(slots) == 1 else ns
            readings.append((said, ticks * said // ns, *rest))
        return readings

    Worker._go = least


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
