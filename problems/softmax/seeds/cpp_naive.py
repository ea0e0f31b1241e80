"""Softmax, naive: the definition, row by row, one thread."""

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

extern "C" void softmax(const uint16_t* x, uint16_t* out, int64_t rows, int64_t cols) {
    // @begin rows
    for (int64_t i = 0; i < rows; ++i)
    // @end rows
    {
        float largest = from_bf16(x[i * cols]);
        for (int64_t j = 1; j < cols; ++j) largest = std::fmax(largest, from_bf16(x[i * cols + j]));
        // @begin accumulator
        double sum = 0;
        // @end accumulator
        for (int64_t j = 0; j < cols; ++j) sum += std::exp(from_bf16(x[i * cols + j]) - largest);
        float scale = 1 / (float)sum;
        for (int64_t j = 0; j < cols; ++j)
            out[i * cols + j] = to_bf16(std::exp(from_bf16(x[i * cols + j]) - largest) * scale);
    }
}
"""
FLAGS = []
kernel = load(SOURCE, flags=FLAGS)


def custom_kernel(data):
    x, out = data
    kernel.softmax(x, out, x.shape[0], x.shape[1])
    return out
