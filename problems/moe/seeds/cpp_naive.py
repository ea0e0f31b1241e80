"""Mixture of experts, naive: the definition, one token at a time, one thread."""

from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

constexpr int64_t TOP_K = 4;

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

static float dot(const uint16_t* a, const uint16_t* b, int64_t count) {
    // @begin accumulator
    double sum = 0;
    // @end accumulator
    for (int64_t i = 0; i < count; ++i) sum += from_bf16(a[i]) * from_bf16(b[i]);
    return sum;
}

// The factors of a token's experts: probabilities of the TOP_K best, 0 for others, 1 for the shared one.
static std::vector<float> shares(const uint16_t* x, const uint16_t* router, int64_t hidden, int64_t experts) {
    std::vector<float> logit(experts), share(experts + 1);
    for (int64_t e = 0; e < experts; ++e) logit[e] = dot(x, router + e * hidden, hidden);
    float largest = logit[0], total = 0;
    for (float one : logit) largest = std::fmax(largest, one);
    for (float one : logit) total += std::exp(one - largest);
    for (int64_t n = 0; n < TOP_K; ++n) {
        int64_t best = 0;
        for (int64_t e = 1; e < experts; ++e)
            if (logit[e] > logit[best]) best = e;
        share[best] = std::exp(logit[best] - largest) / total;
        logit[best] = -INFINITY;
    }
    share[experts] = 1;
    return share;
}

extern "C" void moe(const uint16_t* x, const uint16_t* router, const uint16_t* gate, const uint16_t* up,
                    const uint16_t* down, uint16_t* out, int64_t tokens, int64_t hidden, int64_t inner,
                    int64_t experts) {
    // @begin rows
    for (int64_t t = 0; t < tokens; ++t)
    // @end rows
    {
        const uint16_t* row = x + t * hidden;
        std::vector<float> share = shares(row, router, hidden, experts), h(inner), sum(hidden);
        for (int64_t e = 0; e <= experts; ++e) {
            if (share[e] == 0) continue;
            for (int64_t i = 0; i < inner; ++i) {
                float g = dot(row, gate + (e * inner + i) * hidden, hidden);
                h[i] = g / (1 + std::exp(-g)) * dot(row, up + (e * inner + i) * hidden, hidden);
            }
            for (int64_t j = 0; j < hidden; ++j) {
                float part = 0;
                for (int64_t i = 0; i < inner; ++i) part += h[i] * from_bf16(down[(e * hidden + j) * inner + i]);
                sum[j] += share[e] * part;
            }
        }
        for (int64_t j = 0; j < hidden; ++j) out[t * hidden + j] = to_bf16(sum[j]);
    }
}
"""
FLAGS = []
kernel = load(SOURCE, flags=FLAGS)


def custom_kernel(data):
    x, router, gate, up, down, out = data
    kernel.moe(x, router, gate, up, down, out, x.shape[0], x.shape[1], gate.shape[1], router.shape[0])
    return out
