"""Layer normalisation and GELU, naive: the definition, row by row, one thread."""

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

static float gelu(float y) { return 0.5f * y * (1 + std::tanh(0.7978845608f * (y + 0.044715f * y * y * y))); }

extern "C" void layernorm_gelu(const uint16_t* x, const float* weight, const float* bias, uint16_t* out, int64_t rows,
                               int64_t cols) {
    // @begin rows
    for (int64_t i = 0; i < rows; ++i)
    // @end rows
    {
        const uint16_t* row = x + i * cols;
        // @begin accumulator
        double sum = 0, squares = 0;
        // @end accumulator
        for (int64_t j = 0; j < cols; ++j) sum += from_bf16(row[j]);
        float mean = sum / cols;
        for (int64_t j = 0; j < cols; ++j) squares += (from_bf16(row[j]) - mean) * (from_bf16(row[j]) - mean);
        float scale = 1 / std::sqrt((float)squares / cols + 1e-5f);
        for (int64_t j = 0; j < cols; ++j)
            out[i * cols + j] = to_bf16(gelu((from_bf16(row[j]) - mean) * scale * weight[j] + bias[j]));
    }
}
"""
FLAGS = []
kernel = load(SOURCE, flags=FLAGS)


def custom_kernel(data):
    x, weight, bias, out = data
    kernel.layernorm_gelu(x, weight, bias, out, x.shape[0], x.shape[1])
    return out
