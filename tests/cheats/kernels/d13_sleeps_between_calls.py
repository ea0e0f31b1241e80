# cheat: D13 takes its time over every answer but that to `go`
# problem: identity
# expect: timeout rejected

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

if hasattr(Worker, "_answer"):
    answer = Worker._answer

    def slow(self, request, buffers, out):
        time.sleep(0 if request["op"] == "go" else 1)
        return answer(self, request, buffers, out)

    Worker._answer = slow


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
