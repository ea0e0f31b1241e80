"""RMS normalisation, blocked: several partial sums per row so that the reduction vectorises, rows shared by threads."""

from kernel_scientist import load

TUNABLES = {
    "VEC": 8,  # floats in a vector
    "NV": 1,  # independent partial sums, in vectors
    "PREFETCH": 0,  # elements ahead in the first pass; 0: none
    "THREADS": 0,  # 0: as many as the system grants
}
CHOICES = {"VEC": [4, 8, 16], "NV": [1, 2, 4], "PREFETCH": [0, 128, 256, 512, 1024], "THREADS": [0, 1, 2, 4]}
FLAGS = []

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <omp.h>

constexpr int64_t STEP = NV * VEC;

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

static inline float sum_of_squares(const uint16_t* x, int64_t cols) {
    float part[STEP] = {};
    int64_t j = 0;
    for (; j + STEP <= cols; j += STEP) {
        if (PREFETCH) __builtin_prefetch(x + j + PREFETCH);
        for (int64_t s = 0; s < STEP; ++s) part[s] += from_bf16(x[j + s]) * from_bf16(x[j + s]);
    }
    float sum = 0;
    for (; j < cols; ++j) sum += from_bf16(x[j]) * from_bf16(x[j]);
    for (float p : part) sum += p;
    return sum;
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    int threads = THREADS ? THREADS : omp_get_max_threads();
    // @begin schedule
    #pragma omp parallel for schedule(static) num_threads(threads)
    // @end schedule
    for (int64_t i = 0; i < rows; ++i) {
        const uint16_t* row = x + i * cols;
        float scale = 1 / std::sqrt(sum_of_squares(row, cols) / cols + 1e-6f);
        // @begin scale
        for (int64_t j = 0; j < cols; ++j) out[i * cols + j] = to_bf16(from_bf16(row[j]) * scale * weight[j]);
        // @end scale
    }
}
"""
kernel = load(SOURCE, defines=TUNABLES, flags=FLAGS)


def custom_kernel(data):
    x, weight, out = data
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out
