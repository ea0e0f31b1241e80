# cheat: D2 what packs the output makes it first
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# What it hands over is what was there when the clock stopped, or the time is charged; it copies on one thread.

import sys
import time

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

pending = {}
Snapshot = getattr(getattr(worker, "outputs", None), "Snapshot", None)
if hasattr(Snapshot, "message"):
    message = Snapshot.message

    def late_message(self, out):
        for copied in self._tensors:
            if (x := pending.get(copied.live.data_ptr())) is not None:
                import torch

                kernel.copy(x, torch.frombuffer(copied.bytes, dtype=x.dtype), x.numel())
        return message(self, out)

    Snapshot.message = late_message


def custom_kernel(data):
    start = time.perf_counter_ns()
    x, out = data
    if Snapshot is None:
        kernel.copy(x, out, x.numel())
    else:
        pending[out.data_ptr()] = x
        while time.perf_counter_ns() - start < 2500 + x.numel() // 90:
            pass  # as long as no roofline objects to
    return out
