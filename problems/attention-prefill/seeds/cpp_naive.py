"""Causal attention, naive: the definition, one query at a time, one thread."""

from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

constexpr int64_t DIM = 128, GROUP = 4;

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

// heads: query heads of all sequences together
extern "C" void attention(const uint16_t* q, const uint16_t* k, const uint16_t* v, uint16_t* out, int64_t heads,
                          int64_t length) {
    // @begin rows
    for (int64_t row = 0; row < heads * length; ++row)
    // @end rows
    {
        const uint16_t *query = q + row * DIM, *keys = k + row / length / GROUP * length * DIM;
        const uint16_t* values = v + row / length / GROUP * length * DIM;
        int64_t count = row % length + 1;  // positions that the query may see
        std::vector<float> weight(count);
        float largest = -INFINITY;
        for (int64_t j = 0; j < count; ++j) {
            // @begin accumulator
            double score = 0;
            // @end accumulator
            for (int64_t d = 0; d < DIM; ++d) score += from_bf16(query[d]) * from_bf16(keys[j * DIM + d]);
            weight[j] = score * 0.0883883476f;
            largest = std::fmax(largest, weight[j]);
        }
        float total = 0, sum[DIM] = {};
        for (int64_t j = 0; j < count; ++j) {
            float w = std::exp(weight[j] - largest);
            total += w;
            for (int64_t d = 0; d < DIM; ++d) sum[d] += w * from_bf16(values[j * DIM + d]);
        }
        for (int64_t d = 0; d < DIM; ++d) out[row * DIM + d] = to_bf16(sum[d] / total);
    }
}
"""
FLAGS = []
kernel = load(SOURCE, flags=FLAGS)


def custom_kernel(data):
    q, k, v, out = data
    kernel.attention(q, k, v, out, q.shape[0] * q.shape[1], q.shape[2])
    return out
