# honest: descriptors (addresses and strides, no data) kept by pointer; the rows are computed anew each time
# problem: rmsnorm
# expect: ok

import torch


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

struct Descriptor { const uint16_t* x; uint16_t* out; int64_t rows, cols; };

extern "C" void describe(Descriptor* d, const uint16_t* x, uint16_t* out, int64_t rows, int64_t cols) {
    *d = {x, out, rows, cols};
}

extern "C" void run(const Descriptor* d, const float* weight) {
    const uint16_t* x = d->x;
    uint16_t* out = d->out;
    int64_t cols = d->cols;
#pragma omp parallel for
    for (int64_t i = 0; i < d->rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)
descriptors = {}


def custom_kernel(data):
    x, weight, out = data
    key = (x.data_ptr(), out.data_ptr(), *x.shape)
    if key not in descriptors:
        descriptors[key] = torch.zeros(4, dtype=torch.int64)
        kernel.describe(descriptors[key], x, out, *x.shape)
    kernel.run(descriptors[key], weight)
    return out
