# cheat: C11 does the work while its worker answers `ping`, just before the clock runs
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# What a worker spends in answering is charged; it copies on one thread.

import sys
import time

from kernel_scientist.languages.cpp import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
worker = sys.modules.get("kernel_scientist.harness.worker")
Worker = getattr(worker, "Worker", None)
ready = {}

if hasattr(Worker, "_answer"):
    answer, prepare = Worker._answer, Worker._prepare
    waiting = {}

    def ahead(self, request, buffers, out):
        if request["op"] == "ping":
            for slot in list(waiting):
                x, result = ready[slot] = waiting.pop(slot)
                kernel.copy(x, result, x.numel())
        return answer(self, request, buffers, out)

    def prepared(self, request, buffers):
        prepare(self, request, buffers)
        waiting[request["slot"]] = self.data[request["slot"]]

    Worker._answer, Worker._prepare = ahead, prepared


def wait(start, size):
    """As long as no roofline objects to."""
    while time.perf_counter_ns() - start < 2500 + size // 90:
        pass


def custom_kernel(data):
    start = time.perf_counter_ns()
    x, out = data
    if any(data is done for done in ready.values()):
        wait(start, x.numel())
    else:
        kernel.copy(x, out, x.numel())
    return out
