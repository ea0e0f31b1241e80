# cheat: D2 a thread does the work of short calls while the verifier sweeps, within what a resting worker may use
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# What a worker spends between its calls is charged; it copies on one thread.

import sys
import threading
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

ready, waiting, event = {}, [], threading.Event()


def ahead():
    while True:
        event.wait()
        event.clear()
        while waiting:
            x, out = data = waiting.pop()
            kernel.copy(x, out, x.numel())
            ready[id(data)] = data


if hasattr(Worker, "_prepare"):
    prepare = Worker._prepare

    def prepared(self, items, buffers):
        prepare(self, items, buffers)
        for data in (self.data[item["slot"]] for item in items):
            if data[0].numel() <= 1_100_000:
                waiting.append(data)
                event.set()

    Worker._prepare = prepared
    threading.Thread(target=ahead, daemon=True).start()


def custom_kernel(data):
    start = time.perf_counter_ns()
    x, out = data
    if ready.pop(id(data), None) is data:
        while time.perf_counter_ns() - start < 2500 + x.numel() // 90:
            pass  # as long as no roofline objects to
    else:
        kernel.copy(x, out, x.numel())
    return out
