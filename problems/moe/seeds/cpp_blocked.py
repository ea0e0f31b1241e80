"""Mixture of experts, blocked: tokens grouped by expert, every weight row converted once for all tokens of its expert.

Three parallel loops: router, first two products, last product. A pair of token and expert is called a slot.
"""

from kernel_scientist import load

TUNABLES = {
    "VEC": 8,  # floats in a vector
    "MR": 2,  # slots that share a loaded vector of weights
    "NV": 1,  # independent partial sums of each slot, in vectors
    "THREADS": 0,  # 0: as many as the system grants
}
CHOICES = {"VEC": [4, 8, 16], "MR": [1, 2, 4, 6, 8], "NV": [1, 2, 4], "THREADS": [0, 1, 2, 4]}
FLAGS = []

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <omp.h>

constexpr int64_t TOP_K = 4, STEP = NV * VEC;
static_assert(64 % STEP == 0, "rows are multiples of 64");
typedef float vec __attribute__((vector_size(4 * VEC), aligned(4)));

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

template <class T>
static T* scratch(int which, int64_t count) {  // grows, is kept between calls
    static thread_local void* memory[8];
    static thread_local int64_t size[8];
    if (size[which] < count * (int64_t)sizeof(T)) {
        std::free(memory[which]);
        size[which] = (count * sizeof(T) + 4095) / 4096 * 4096;
        memory[which] = std::aligned_alloc(4096, size[which]);
    }
    return (T*)memory[which];
}

static inline void unpack(const uint16_t* x, int64_t count, float* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = from_bf16(x[i]);
}

// out[s] = a[s] . w for ROWS rows
template <int64_t ROWS>
static inline void dots(const float* const* a, const float* w, int64_t count, float* out) {
    vec part[ROWS][NV] = {};
    for (int64_t i = 0; i < count; i += STEP)
        for (int64_t v = 0; v < NV; ++v) {
            vec column = *(const vec*)(w + i + v * VEC);
            for (int64_t s = 0; s < ROWS; ++s) part[s][v] += *(const vec*)(a[s] + i + v * VEC) * column;
        }
    for (int64_t s = 0; s < ROWS; ++s) {
        out[s] = 0;
        for (int64_t i = 0; i < STEP; ++i) out[s] += part[s][i / VEC][i % VEC];
    }
}

static inline void every_dot(const float* const* a, int64_t rows, const float* w, int64_t count, float* out) {
    int64_t s = 0;
    for (; s + MR <= rows; s += MR) dots<MR>(a + s, w, count, out + s);
    for (; s < rows; ++s) dots<1>(a + s, w, count, out + s);
}

// Chooses a token's experts and their factors; logits is overwritten.
static inline void route(float* logits, int64_t experts, int64_t* chosen, float* share) {
    float largest = *std::max_element(logits, logits + experts), total = 0;
    for (int64_t e = 0; e < experts; ++e) total += logits[e] = std::exp(logits[e] - largest);
    for (int64_t n = 0; n < TOP_K; ++n) {
        chosen[n] = std::max_element(logits, logits + experts) - logits;
        share[n] = logits[chosen[n]] / total;
        logits[chosen[n]] = -1;
    }
    chosen[TOP_K] = experts;
    share[TOP_K] = 1;
}

extern "C" void moe(const uint16_t* x, const uint16_t* router, const uint16_t* gate, const uint16_t* up,
                    const uint16_t* down, uint16_t* out, int64_t tokens, int64_t hidden, int64_t inner,
                    int64_t experts) {
    constexpr int64_t USED = TOP_K + 1;
    int64_t slots = tokens * USED;
    float* rows = scratch<float>(0, tokens * hidden);
    float* h = scratch<float>(1, slots * inner);
    float* share = scratch<float>(2, 2 * slots);  // by token, then by slot
    int64_t* chosen = scratch<int64_t>(3, 2 * slots + experts + 2);
    int64_t *token_of = chosen + slots, *first = token_of + slots;  // of a slot; slots of each expert
    const float** inputs = scratch<const float*>(4, 2 * slots);     // rows of x and of h by slot
    int threads = THREADS ? THREADS : omp_get_max_threads();
#pragma omp parallel num_threads(threads)
    {
        float* weight = scratch<float>(5, 2 * std::max(hidden, inner));
        float* result = scratch<float>(6, 2 * slots + experts);
        float* sum = scratch<float>(7, tokens);
        #pragma omp for schedule(static)
        for (int64_t t = 0; t < tokens; ++t) {
            const float* row = rows + t * hidden;
            unpack(x + t * hidden, hidden, rows + t * hidden);
            for (int64_t e = 0; e < experts; ++e) {
                unpack(router + e * hidden, hidden, weight);
                dots<1>(&row, weight, hidden, result + e);
            }
            route(result, experts, chosen + t * USED, share + t * USED);
        }
        #pragma omp single
        {
            int64_t slot = 0;
            for (int64_t e = 0; e <= experts; ++e) {
                first[e] = slot;
                for (int64_t i = 0; i < slots; ++i)
                    if (chosen[i] == e) {
                        token_of[slot] = i / USED, share[slots + slot] = share[i];
                        inputs[slot] = rows + i / USED * hidden, inputs[slots + slot] = h + slot * inner;
                        ++slot;
                    }
            }
            first[experts + 1] = slot;
        }
        // @begin schedule
        #pragma omp for schedule(static)
        // @end schedule
        for (int64_t r = 0; r < (experts + 1) * inner; ++r) {  // rows of gate and of up
            int64_t begin = first[r / inner], count = first[r / inner + 1] - begin;
            if (!count) continue;
            unpack(gate + r * hidden, hidden, weight);
            unpack(up + r * hidden, hidden, weight + hidden);
            every_dot(inputs + begin, count, weight, hidden, result);
            every_dot(inputs + begin, count, weight + hidden, hidden, result + count);
            for (int64_t s = 0; s < count; ++s)
                h[(begin + s) * inner + r % inner] =
                    share[slots + begin + s] * result[s] / (1 + std::exp(-result[s])) * result[count + s];
        }
        #pragma omp for schedule(static)
        for (int64_t j = 0; j < hidden; ++j) {
            std::fill(sum, sum + tokens, 0.0f);
            for (int64_t e = 0; e <= experts; ++e) {
                int64_t begin = first[e], count = first[e + 1] - begin;
                if (!count) continue;
                unpack(down + (e * hidden + j) * inner, inner, weight);
                every_dot(inputs + slots + begin, count, weight, inner, result);
                for (int64_t s = 0; s < count; ++s) sum[token_of[begin + s]] += result[s];
            }
            for (int64_t t = 0; t < tokens; ++t) out[t * hidden + j] = to_bf16(sum[t]);
        }
    }
}
"""
kernel = load(SOURCE, defines=TUNABLES, flags=FLAGS)


def custom_kernel(data):
    x, router, gate, up, down, out = data
    kernel.moe(x, router, gate, up, down, out, x.shape[0], x.shape[1], gate.shape[1], router.shape[0])
    return out
