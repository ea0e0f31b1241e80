# cheat: A11 answers to every published case, computed at import from the published seed
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# Timed calls have secret seeds: it finds nothing and computes, one-threaded.

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

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)


def published(rows, cols, seed=42):
    gen = torch.Generator()
    gen.manual_seed(seed)
    x = torch.randn((rows, cols), generator=gen)
    spread = torch.rand((rows, 1), generator=gen) * 4 + 0.05
    weight = torch.randn(cols, generator=gen)
    return (x * spread).to(torch.bfloat16), weight


def fingerprint(x):
    return (*x.shape, *x.view(-1)[:8].tolist())


answers = {}
SIZES = ((1, 128), (7, 1000), (33, 577), (128, 1024), (1024, 1024), (512, 4096), (4096, 576))
for size in SIZES:
    x, weight = published(*size)
    answer = torch.empty_like(x)
    kernel.rmsnorm(x, weight, answer, *size)
    answers[fingerprint(x)] = answer


def custom_kernel(data):
    x, weight, out = data
    known = answers.get(fingerprint(x))
    if known is not None:
        return known
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out
