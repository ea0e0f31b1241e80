"""Causal attention, blocked: MR queries at a time against KC positions, running maximum and sum, all cores.

K and V are converted to fp32 once per head, K transposed, so that scores of VEC positions are one vector.
"""

from kernel_scientist import load

TUNABLES = {
    "VEC": 8,  # floats in a vector
    "MR": 4,  # queries of a register tile
    "NV": 1,  # vectors of positions, and of the head's dimension, in a row of a register tile
    "KC": 64,  # positions of a block
    "THREADS": 0,  # 0: as many as the system grants
}
CHOICES = {"VEC": [4, 8, 16], "MR": [2, 4, 6, 8], "NV": [1, 2, 4], "KC": [64, 128, 256], "THREADS": [0, 1, 2, 4]}
FLAGS = []

SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <omp.h>

constexpr int64_t DIM = 128, GROUP = 4, NR = NV * VEC;
constexpr float SCALE = 0.0883883476f, LOWEST = -1e30f;
static_assert(KC % NR == 0 && DIM % NR == 0, "register tiles must cover a block and a head");
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

static float* scratch(int which, int64_t count) {  // grows, is kept between calls
    static thread_local float* memory[4];
    static thread_local int64_t size[4];
    if (size[which] < count) {
        std::free(memory[which]);
        size[which] = (count + 1023) / 1024 * 1024;
        memory[which] = (float*)std::aligned_alloc(4096, size[which] * sizeof(float));
    }
    return memory[which];
}

// A block of keys as [DIM][KC], a block of values as [KC][DIM]; positions past the end are zero.
static void unpack(const uint16_t* k, const uint16_t* v, int64_t count, float* keys, float* values) {
    for (int64_t j = 0; j < KC; ++j)
        for (int64_t d = 0; d < DIM; ++d) {
            keys[d * KC + j] = j < count ? from_bf16(k[j * DIM + d]) : 0;
            values[j * DIM + d] = j < count ? from_bf16(v[j * DIM + d]) : 0;
        }
}

// c[MR][width] += a[MR][depth] x b[depth][width]
template <int64_t depth, int64_t width>
static inline void product(const float* a, const float* b, float* c) {
    for (int64_t n = 0; n < width; n += NR) {
        vec acc[MR][NV];
        for (int i = 0; i < MR; ++i)
            for (int j = 0; j < NV; ++j) acc[i][j] = *(vec*)(c + i * width + n + j * VEC);
        for (int64_t p = 0; p < depth; ++p)
            for (int j = 0; j < NV; ++j) {
                vec column = *(const vec*)(b + p * width + n + j * VEC);
                for (int i = 0; i < MR; ++i) acc[i][j] += a[i * depth + p] * column;
            }
        for (int i = 0; i < MR; ++i)
            for (int j = 0; j < NV; ++j) *(vec*)(c + i * width + n + j * VEC) = acc[i][j];
    }
}

struct Query {  // running state of a row
    float largest, total;
};

// Turns a row's scores of positions [first, first + KC) into weights; rescales the row's sums if its maximum grows.
static inline void weigh(float* score, int64_t visible, Query& query, float* sum) {
    for (int64_t j = std::max<int64_t>(visible, 0); j < KC; ++j) score[j] = LOWEST;
    vec top = *(vec*)score;
    for (int64_t j = VEC; j < KC; j += VEC) top = *(vec*)(score + j) > top ? *(vec*)(score + j) : top;
    float largest = query.largest;
    for (int64_t s = 0; s < VEC; ++s) largest = std::max(largest, top[s]);
    float factor = exponential(vec{} + (query.largest - largest))[0];
    vec total = {};
    for (int64_t j = 0; j < KC; j += VEC) total += *(vec*)(score + j) = exponential(*(vec*)(score + j) - largest);
    query.total *= factor;
    for (int64_t s = 0; s < VEC; ++s) query.total += total[s];
    query.largest = largest;
    for (int64_t d = 0; d < DIM; ++d) sum[d] *= factor;
}

// heads: query heads of all sequences together
extern "C" void attention(const uint16_t* q, const uint16_t* k, const uint16_t* v, uint16_t* out, int64_t heads,
                          int64_t length) {
    int64_t blocks = (length + KC - 1) / KC, kvheads = heads / GROUP, tiles = (length + MR - 1) / MR;
    float* keys = scratch(0, kvheads * blocks * KC * DIM);
    float* values = scratch(1, kvheads * blocks * KC * DIM);
    int threads = THREADS ? THREADS : omp_get_max_threads();
#pragma omp parallel num_threads(threads)
    {
        // @begin schedule
        #pragma omp for schedule(static)
        // @end schedule
        for (int64_t t = 0; t < kvheads * blocks; ++t) {
            int64_t first = t % blocks * KC, from = (t / blocks * length + first) * DIM;
            int64_t count = std::min<int64_t>(KC, length - first);
            unpack(k + from, v + from, count, keys + t * KC * DIM, values + t * KC * DIM);
        }
        float* sums = scratch(2, MR * DIM);
        float* work = scratch(3, MR * (DIM + KC));
        // later tiles see more positions: handed out one by one
        #pragma omp for schedule(dynamic)
        for (int64_t t = 0; t < heads * tiles; ++t) {
            int64_t head = t / tiles, row = t % tiles * MR, rows = std::min<int64_t>(MR, length - row);
            const uint16_t* query = q + (head * length + row) * DIM;
            float *scaled = work, *scores = work + MR * DIM;
            for (int64_t i = 0; i < MR * DIM; ++i) scaled[i] = i < rows * DIM ? from_bf16(query[i]) * SCALE : 0;
            std::fill(sums, sums + MR * DIM, 0.0f);
            Query state[MR];
            for (Query& one : state) one = {LOWEST, 0};
            for (int64_t first = 0; first < row + rows; first += KC) {
                int64_t at = (head / GROUP * blocks + first / KC) * KC * DIM;
                std::fill(scores, scores + MR * KC, 0.0f);
                product<DIM, KC>(scaled, keys + at, scores);
                for (int64_t i = 0; i < MR; ++i)
                    weigh(scores + i * KC, row + i + 1 - first, state[i], sums + i * DIM);
                product<KC, DIM>(scores, values + at, sums);
            }
            uint16_t* target = out + (head * length + row) * DIM;
            for (int64_t i = 0; i < rows * DIM; ++i) target[i] = to_bf16(sums[i] / state[i / DIM].total);
        }
    }
}
"""
kernel = load(SOURCE, defines=TUNABLES, flags=FLAGS)


def custom_kernel(data):
    q, k, v, out = data
    kernel.attention(q, k, v, out, q.shape[0] * q.shape[1], q.shape[2])
    return out
