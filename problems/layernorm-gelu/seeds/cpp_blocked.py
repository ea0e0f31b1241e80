"""Layer normalisation and GELU, blocked: vectors, partial sums, each row kept in fp32, rows shared by threads."""

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
#include <cstdlib>
#include <cstring>
#include <omp.h>

constexpr int64_t STEP = NV * VEC;
typedef float vec __attribute__((vector_size(4 * VEC), aligned(4)));
typedef int32_t ivec __attribute__((vector_size(4 * VEC), aligned(4)));

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

// e^x for x <= 0, relative error 2e-7; below -87 the result stays near 1e-38.
static inline vec exponential(vec x) {
    vec least = x * 0 - 87.0f;
    x = x > least ? x : least;
    ivec n = __builtin_convertvector(x * 1.44269504f - 0.5f, ivec);  // to nearest, as x is not positive
    vec whole = __builtin_convertvector(n, vec), r = x - whole * 0.693145752f - whole * 1.42860677e-6f;
    vec p = 1 + r * (1 + r * (0.5f + r * (0.166666672f + r * (0.0416664667f + r * (0.00833345205f + r * 0.00139f)))));
    return p * (vec)((n + 127) << 23);
}

static float* scratch(int64_t count) {  // grows, is kept between calls
    static thread_local float* memory;
    static thread_local int64_t size;
    if (size < count) {
        std::free(memory);
        size = (count + 1023) / 1024 * 1024;
        memory = (float*)std::aligned_alloc(4096, size * sizeof(float));
    }
    return memory;
}

// Converts a row to fp32, padded to a multiple of STEP; returns the padded length.
static inline int64_t unpack(const uint16_t* x, int64_t cols, float padding, float* row) {
    int64_t j = 0;
    for (; j + STEP <= cols; j += STEP) {
        if (PREFETCH) __builtin_prefetch(x + j + PREFETCH);
        for (int64_t s = 0; s < STEP; ++s) row[j + s] = from_bf16(x[j + s]);
    }
    for (; j < cols; ++j) row[j] = from_bf16(x[j]);
    for (; j % STEP; ++j) row[j] = padding;
    return j;
}

// 0.5 (1 + tanh(u)) is 1 / (1 + e^-2u); for u < 0 numerator and denominator are multiplied by e^2u.
static inline vec gelu(vec y) {
    vec u = 1.5957691216f * (y + 0.044715f * y * y * y), zero = u * 0, e = exponential(u > zero ? -u : u);
    return y * (u > zero ? zero + 1.0f : e) / (1 + e);
}

static inline float sum_of(const float* row, int64_t length) {
    vec part[NV] = {};
    for (int64_t j = 0; j < length; j += STEP)
        for (int64_t v = 0; v < NV; ++v) part[v] += *(const vec*)(row + j + v * VEC);
    float sum = 0;
    for (int64_t s = 0; s < STEP; ++s) sum += part[s / VEC][s % VEC];
    return sum;
}

// Subtracts the mean from a row and returns the sum of squares.
static inline float centre(float* row, float mean, int64_t length) {
    vec part[NV] = {};
    for (int64_t j = 0; j < length; j += STEP)
        for (int64_t v = 0; v < NV; ++v) {
            vec* place = (vec*)(row + j + v * VEC);
            *place -= mean;
            part[v] += *place * *place;
        }
    float sum = 0;
    for (int64_t s = 0; s < STEP; ++s) sum += part[s / VEC][s % VEC];
    return sum;
}

extern "C" void layernorm_gelu(const uint16_t* x, const float* weight, const float* bias, uint16_t* out, int64_t rows,
                               int64_t cols) {
    int threads = THREADS ? THREADS : omp_get_max_threads();
    // @begin schedule
    #pragma omp parallel for schedule(static) num_threads(threads)
    // @end schedule
    for (int64_t i = 0; i < rows; ++i) {
        uint16_t* target = out + i * cols;
        float* row = scratch(cols + STEP);
        int64_t length = unpack(x + i * cols, cols, 0, row), j = 0;
        float mean = sum_of(row, length) / cols;
        for (int64_t p = cols; p < length; ++p) row[p] = mean;  // adds nothing to the squares
        float scale = 1 / std::sqrt(centre(row, mean, length) / cols + 1e-5f);
        // @begin scale
        for (; j + VEC <= cols; j += VEC)
            *(vec*)(row + j) = gelu(*(vec*)(row + j) * scale * *(const vec*)(weight + j) + *(const vec*)(bias + j));
        vec rest = {};
        for (int64_t p = j; p < cols; ++p) rest[p - j] = row[p] * scale * weight[p] + bias[p];
        rest = gelu(rest);
        for (int64_t p = j; p < cols; ++p) row[p] = rest[p - j];
        for (j = 0; j < cols; ++j) target[j] = to_bf16(row[j]);
        // @end scale
    }
}
"""
kernel = load(SOURCE, defines=TUNABLES, flags=FLAGS)


def custom_kernel(data):
    x, weight, bias, out = data
    kernel.layernorm_gelu(x, weight, bias, out, x.shape[0], x.shape[1])
    return out
