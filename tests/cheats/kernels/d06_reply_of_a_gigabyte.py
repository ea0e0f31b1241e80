# cheat: D6 adds a gigabyte to its answers, for the verifier to hold
# problem: identity
# expect: rejected crashed

import mmap
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

if hasattr(Worker, "_answer"):
    answer, ballast = Worker._answer, memoryview(mmap.mmap(-1, 1 << 30))

    def heavy(self, request, buffers, out):
        reply = answer(self, request, buffers, out)
        if request["op"] == "prepare":
            out.append(ballast)
        return reply

    Worker._answer = heavy


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
