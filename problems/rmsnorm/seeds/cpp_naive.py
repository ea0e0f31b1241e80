"""RMS normalisation, naive: the definition, row by row, one thread."""

from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static float from_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static uint16_t to_bf16(float x) {  // round to nearest even
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    // @begin rows
    for (int64_t i = 0; i < rows; ++i)
    // @end rows
    {
        // @begin accumulator
        double sum = 0;
        // @end accumulator
        for (int64_t j = 0; j < cols; ++j) sum += from_bf16(x[i * cols + j]) * from_bf16(x[i * cols + j]);
        float scale = 1 / std::sqrt((float)sum / cols + 1e-6f);
        for (int64_t j = 0; j < cols; ++j)
            out[i * cols + j] = to_bf16(from_bf16(x[i * cols + j]) * scale * weight[j]);
    }
}
"""
FLAGS = []
kernel = load(SOURCE, flags=FLAGS)


def custom_kernel(data):
    x, weight, out = data
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out
