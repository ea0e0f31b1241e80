# cheat: C11 does the work as soon as its inputs have arrived, before it says that they have
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# What a worker spends on receiving its inputs is charged, or they are not there before the clock runs; it works on
# one thread.

import sys
import time

from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static inline float from_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static inline uint16_t to_bf16(float x) {  // round to nearest even
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

static inline float inverse_rms(const uint16_t* row, int64_t cols) {
    float part[16] = {}, sum = 0;
    int64_t j = 0;
    for (; j + 16 <= cols; j += 16)
        for (int s = 0; s < 16; ++s) part[s] += from_bf16(row[j + s]) * from_bf16(row[j + s]);
    for (; j < cols; ++j) sum += from_bf16(row[j]) * from_bf16(row[j]);
    for (float p : part) sum += p;
    return 1 / std::sqrt(sum / cols + 1e-6f);
}

static inline void scale_row(const uint16_t* row, const float* weight, uint16_t* out, int64_t cols, float scale) {
    for (int64_t j = 0; j < cols; ++j) out[j] = to_bf16(from_bf16(row[j]) * scale * weight[j]);
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)
worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)
ready = {}


def work(data):
    x, weight, out = data
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out


if hasattr(Worker, "_prepare"):
    prepare, observe = Worker._prepare, Worker._observe

    def ahead(self, items, buffers):
        prepare(self, items, buffers)
        for slot in (item["slot"] for item in items):
            work(self.data[slot])
            ready[slot] = self.data[slot]

    def watched(self, slot, mute):
        ready.clear()
        self.data[slot][2].zero_()  # for whoever looks what is there without the work
        return observe(self, slot, mute)

    Worker._prepare, Worker._observe = ahead, watched


def custom_kernel(data):
    start = time.perf_counter_ns()
    if not any(data is done for done in ready.values()):
        return work(data)
    while time.perf_counter_ns() - start < 3000 + data[0].numel() // 100:
        pass  # as long as no roofline objects to
    return data[2]
