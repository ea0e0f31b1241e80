"""Latent attention, naive: the absorbed form, one head of one sequence at a time, one thread."""

from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

constexpr int64_t NOPE = 128, ROPE = 64, LATENT = 512, ROW = LATENT + ROPE;

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

static float dot(const float* a, const uint16_t* b, int64_t count) {
    // @begin accumulator
    double sum = 0;
    // @end accumulator
    for (int64_t i = 0; i < count; ++i) sum += a[i] * from_bf16(b[i]);
    return sum;
}

extern "C" void decode(const uint16_t* q_nope, const uint16_t* q_rope, const uint16_t* w_k, const uint16_t* w_v,
                       const uint16_t* cache, uint16_t* out, int64_t batch, int64_t heads, int64_t length) {
    // @begin rows
    for (int64_t n = 0; n < batch * heads; ++n)
    // @end rows
    {
        const uint16_t* rows = cache + n / heads * length * ROW;
        const uint16_t *keys = w_k + n % heads * NOPE * LATENT, *values = w_v + n % heads * NOPE * LATENT;
        float query[ROW] = {}, latent[LATENT] = {};
        for (int64_t d = 0; d < NOPE; ++d)
            for (int64_t c = 0; c < LATENT; ++c)
                query[c] += from_bf16(q_nope[n * NOPE + d]) * from_bf16(keys[d * LATENT + c]);
        for (int64_t d = 0; d < ROPE; ++d) query[LATENT + d] = from_bf16(q_rope[n * ROPE + d]);
        std::vector<float> weight(length);
        float largest = -INFINITY, total = 0;
        for (int64_t j = 0; j < length; ++j) {
            weight[j] = dot(query, rows + j * ROW, ROW) * 0.0721687836f;
            largest = std::fmax(largest, weight[j]);
        }
        for (int64_t j = 0; j < length; ++j) {
            float w = std::exp(weight[j] - largest);
            total += w;
            for (int64_t c = 0; c < LATENT; ++c) latent[c] += w * from_bf16(rows[j * ROW + c]);
        }
        for (int64_t d = 0; d < NOPE; ++d)
            out[n * NOPE + d] = to_bf16(dot(latent, values + d * LATENT, LATENT) / total);
    }
}
"""
FLAGS = []
kernel = load(SOURCE, flags=FLAGS)


def custom_kernel(data):
    q_nope, q_rope, w_k, w_v, cache, out = data
    kernel.decode(q_nope, q_rope, w_k, w_v, cache, out, out.shape[0], out.shape[1], cache.shape[1])
    return out
