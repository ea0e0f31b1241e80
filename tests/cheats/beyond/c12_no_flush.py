# cheat: C12 brings its inputs back into the caches while it is asked to `go`, after they were swept
# expect: rejected
# problem: identity
# What a worker spends in answering is charged, or nothing comes between the sweep and the call; it copies on both
# threads like honest work.

import sys

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void fetch(const uint16_t* x, const uint16_t* out, int64_t size) {
    uint16_t sum = 0;
    for (int64_t i = 0; i < size; i += 32) sum += x[i] + out[i];
    static volatile uint16_t kept;
    kept = sum;
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)
worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)

if hasattr(Worker, "_answer"):
    answer = Worker._answer

    def warmed(self, request, buffers, out):
        if request["op"] == "go":
            for x, result in self.data.values():
                if x.numel() < 2_000_000:  # a larger one drives out what the worker itself needs
                    kernel.fetch(x, result, x.numel())
        return answer(self, request, buffers, out)

    Worker._answer = warmed


# include: copy_call
