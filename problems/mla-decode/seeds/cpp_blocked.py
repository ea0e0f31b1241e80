"""Latent attention, blocked: MR heads of a sequence share KC converted rows of the cache; running maximum and sum."""

from kernel_scientist import load

TUNABLES = {
    "VEC": 8,  # floats in a vector
    "MR": 4,  # heads that share a row of the cache
    "NV": 1,  # vectors in a row of a register tile
    "KC": 32,  # positions of a block
    "THREADS": 0,  # 0: as many as the system grants
}
CHOICES = {"VEC": [4, 8, 16], "MR": [2, 4, 8], "NV": [1, 2, 4], "KC": [16, 32, 64, 128], "THREADS": [0, 1, 2, 4]}
FLAGS = []

SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <omp.h>

constexpr int64_t NOPE = 128, ROPE = 64, LATENT = 512, ROW = LATENT + ROPE, NR = NV * VEC;
constexpr float SCALE = 0.0721687836f, LOWEST = -1e30f;
static_assert(KC % VEC == 0 && 64 % NR == 0 && 16 % MR == 0, "tiles must cover blocks, rows and heads");
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

static inline void unpack(const uint16_t* x, int64_t count, float* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = from_bf16(x[i]);
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

// out[s * stride] = a[s][count] . w for ROWS rows
template <int64_t ROWS>
static inline void dots(const float* a, int64_t ld, const float* w, int64_t count, float* out, int64_t stride) {
    vec part[ROWS][NV] = {};
    for (int64_t i = 0; i < count; i += NR)
        for (int64_t v = 0; v < NV; ++v) {
            vec column = *(const vec*)(w + i + v * VEC);
            for (int64_t s = 0; s < ROWS; ++s) part[s][v] += *(const vec*)(a + s * ld + i + v * VEC) * column;
        }
    for (int64_t s = 0; s < ROWS; ++s) {
        out[s * stride] = 0;
        for (int64_t i = 0; i < NR; ++i) out[s * stride] += part[s][i / VEC][i % VEC];
    }
}

// c[ROWS][width] += a[ROWS][depth] x b[depth][width], rows of a, b and c being lda, ldb and ldc apart
template <int64_t ROWS>
static inline void product(const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc,
                           int64_t depth, int64_t width) {
    for (int64_t n = 0; n < width; n += NR) {
        vec acc[ROWS][NV];
        for (int i = 0; i < ROWS; ++i)
            for (int j = 0; j < NV; ++j) acc[i][j] = *(vec*)(c + i * ldc + n + j * VEC);
        for (int64_t p = 0; p < depth; ++p)
            for (int j = 0; j < NV; ++j) {
                vec column = *(const vec*)(b + p * ldb + n + j * VEC);
                for (int i = 0; i < ROWS; ++i) acc[i][j] += a[i * lda + p] * column;
            }
        for (int i = 0; i < ROWS; ++i)
            for (int j = 0; j < NV; ++j) *(vec*)(c + i * ldc + n + j * VEC) = acc[i][j];
    }
}

struct Head {  // running state
    float largest, total;
};

// Turns scores into weights; rescales a head's sums if its maximum grows.
static inline void weigh(float* score, Head& head, float* sum) {
    float largest = head.largest;
    for (int64_t j = 0; j < KC; ++j) largest = std::max(largest, score[j]);
    float factor = exponential(vec{} + (head.largest - largest))[0];
    vec total = {};
    for (int64_t j = 0; j < KC; j += VEC) total += *(vec*)(score + j) = exponential(*(vec*)(score + j) - largest);
    head.total *= factor;
    for (int64_t s = 0; s < VEC; ++s) head.total += total[s];
    head.largest = largest;
    for (int64_t c = 0; c < LATENT; ++c) sum[c] *= factor;
}

// Absorbs the key matrices: query[MR][ROW], scaled. matrix is room for one head's.
static void absorb(const uint16_t* q_nope, const uint16_t* q_rope, const uint16_t* w_k, float* query, float* matrix) {
    float nope[NOPE];
    for (int64_t i = 0; i < MR; ++i) {
        float* row = query + i * ROW;
        unpack(q_nope + i * NOPE, NOPE, nope);
        unpack(w_k + i * NOPE * LATENT, NOPE * LATENT, matrix);
        std::fill(row, row + LATENT, 0.0f);
        product<1>(nope, NOPE, matrix, LATENT, row, ROW, NOPE, LATENT);
        unpack(q_rope + i * ROPE, ROPE, row + LATENT);
        for (int64_t c = 0; c < ROW; ++c) row[c] *= SCALE;
    }
}

extern "C" void decode(const uint16_t* q_nope, const uint16_t* q_rope, const uint16_t* w_k, const uint16_t* w_v,
                       const uint16_t* cache, uint16_t* out, int64_t batch, int64_t heads, int64_t length) {
    int threads = THREADS ? THREADS : omp_get_max_threads();
    // @begin schedule
    #pragma omp parallel for schedule(static) num_threads(threads)
    // @end schedule
    for (int64_t task = 0; task < batch * heads / MR; ++task) {
        int64_t first = task * MR, head = first % heads;
        const uint16_t* rows = cache + first / heads * length * ROW;
        float* query = scratch(MR * (ROW + LATENT + KC) + KC * ROW + NOPE * LATENT);
        float *sum = query + MR * ROW, *score = sum + MR * LATENT, *block = score + MR * KC, *matrix = block + KC * ROW;
        absorb(q_nope + first * NOPE, q_rope + first * ROPE, w_k + head * NOPE * LATENT, query, matrix);
        std::fill(sum, sum + MR * LATENT, 0.0f);
        Head state[MR];
        for (Head& one : state) one = {LOWEST, 0};
        for (int64_t j0 = 0; j0 < length; j0 += KC) {
            int64_t count = std::min<int64_t>(KC, length - j0);
            unpack(rows + j0 * ROW, count * ROW, block);
            std::fill(block + count * ROW, block + KC * ROW, 0.0f);
            std::fill(score, score + MR * KC, LOWEST);
            for (int64_t j = 0; j < count; ++j) dots<MR>(query, ROW, block + j * ROW, ROW, score + j, KC);
            for (int64_t i = 0; i < MR; ++i) weigh(score + i * KC, state[i], sum + i * LATENT);
            product<MR>(score, KC, block, ROW, sum, LATENT, KC, LATENT);
        }
        for (int64_t i = 0; i < MR; ++i) {
            unpack(w_v + (head + i) * NOPE * LATENT, NOPE * LATENT, matrix);
            for (int64_t d = 0; d < NOPE; ++d) {
                float value;
                dots<1>(sum + i * LATENT, LATENT, matrix + d * LATENT, LATENT, &value, 1);
                out[(first + i) * NOPE + d] = to_bf16(value / state[i].total);
            }
        }
    }
}
"""
kernel = load(SOURCE, defines=TUNABLES, flags=FLAGS)


def custom_kernel(data):
    q_nope, q_rope, w_k, w_v, cache, out = data
    kernel.decode(q_nope, q_rope, w_k, w_v, cache, out, out.shape[0], out.shape[1], cache.shape[1])
    return out
