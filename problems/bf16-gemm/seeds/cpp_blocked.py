"""bf16 GEMM, blocked: operands transposed and converted once into fp32 panels, register tiles, all cores.

Loops from outside: MC x NC blocks of C (shared among threads), KC steps of k, register tiles of MR rows and NV vectors
of VEC floats.
"""

from kernel_scientist import load

TUNABLES = {
    "VEC": 8,  # floats in a vector
    "MR": 4,  # rows of a register tile
    "NV": 1,  # vectors in a row of a register tile
    "KC": 128,  # depth of a panel
    "MC": 32,  # rows of a block of C
    "NC": 64,  # columns of a block of C
    "UNROLL": 1,  # of the k loop
    "PREFETCH": 0,  # k steps ahead in the B panel; 0: none
    "THREADS": 0,  # 0: as many as the system grants
}
CHOICES = {
    "VEC": [4, 8, 16],
    "MR": [2, 4, 6, 8, 12, 14],
    "NV": [1, 2, 4],
    "KC": [128, 256, 384, 512, 1024],
    "MC": [16, 32, 64, 96, 128, 192],
    "NC": [64, 128, 192, 256, 512],
    "UNROLL": [1, 2, 4, 8],
    "PREFETCH": [0, 2, 4, 8, 16],
    "THREADS": [0, 1, 2, 4],
}
FLAGS = []

SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <omp.h>

constexpr int64_t NR = NV * VEC;
constexpr int UNROLL_K = UNROLL;  // a pragma does not expand macros
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

// @begin core
typedef float element;  // what panels hold
constexpr int64_t DEPTH = 1;  // steps of k in an element

// Writes rows [first, first + W) of an operand as a panel [k][W]; rows past its edge are zero.
template <int64_t W>
static void pack(const uint16_t* x, int64_t rows, int64_t first, int64_t k, element* panel) {
    int64_t count = std::min<int64_t>(W, rows - first);
    for (int64_t p = 0; p < k; ++p, panel += W) {
        for (int64_t j = 0; j < count; ++j) panel[j] = from_bf16(x[(first + j) * k + p]);
        for (int64_t j = count; j < W; ++j) panel[j] = 0;
    }
}

// tile[MR][NR] += panel_a[kc][MR] x panel_b[kc][NR]
static inline void micro(const element* pa, const element* pb, int64_t kc, float* tile, int64_t ld) {
    vec acc[MR][NV];
    for (int i = 0; i < MR; ++i)
        for (int v = 0; v < NV; ++v) acc[i][v] = *(vec*)(tile + i * ld + v * VEC);
#pragma GCC unroll UNROLL_K
    for (int64_t p = 0; p < kc; ++p) {
        if (PREFETCH) __builtin_prefetch(pb + PREFETCH * NR);
        for (int v = 0; v < NV; ++v) {
            vec column = *(const vec*)(pb + v * VEC);
            for (int i = 0; i < MR; ++i) acc[i][v] += pa[i] * column;
        }
        pa += MR, pb += NR;
    }
    for (int i = 0; i < MR; ++i)
        for (int v = 0; v < NV; ++v) *(vec*)(tile + i * ld + v * VEC) = acc[i][v];
}
// @end core

template <class T>
static T* scratch(int which, int64_t count) {  // grows, is kept between calls
    static thread_local void* memory[3];
    static thread_local int64_t size[3];
    if (size[which] < count * (int64_t)sizeof(T)) {
        std::free(memory[which]);
        size[which] = (count * sizeof(T) + 4095) / 4096 * 4096;
        memory[which] = std::aligned_alloc(4096, size[which]);
    }
    return (T*)memory[which];
}

extern "C" void gemm(const uint16_t* a, const uint16_t* b, uint16_t* c, int64_t m, int64_t n, int64_t k) {
    int64_t tiles_m = (m + MR - 1) / MR, tiles_n = (n + NR - 1) / NR;
    element* panel_a = scratch<element>(0, tiles_m * MR * k);
    element* panel_b = scratch<element>(1, tiles_n * NR * k);
    constexpr int64_t TM = MC / MR > 0 ? MC / MR : 1, TN = NC / NR > 0 ? NC / NR : 1;  // register tiles in a block
    int threads = THREADS ? THREADS : omp_get_max_threads();
#pragma omp parallel num_threads(threads)
    {
        // @begin schedule
        #pragma omp for schedule(static)
        // @end schedule
        for (int64_t t = 0; t < tiles_m + tiles_n; ++t) {
            if (t < tiles_m)
                pack<MR>(a, m, t * MR, k, panel_a + t * MR * k / DEPTH);
            else
                pack<NR>(b, n, (t - tiles_m) * NR, k, panel_b + (t - tiles_m) * NR * k / DEPTH);
        }
        constexpr int64_t LD = TN * NR;
        float* tile = scratch<float>(2, TM * MR * LD);
        // @begin block-order
        #pragma omp for collapse(2) schedule(static)
        for (int64_t bm = 0; bm < tiles_m; bm += TM)
            for (int64_t bn = 0; bn < tiles_n; bn += TN) {
        // @end block-order
                int64_t em = std::min(bm + TM, tiles_m), en = std::min(bn + TN, tiles_n);
                std::fill(tile, tile + TM * MR * LD, 0.0f);
                for (int64_t k0 = 0; k0 < k; k0 += KC) {
                    int64_t kc = std::min<int64_t>(KC, k - k0);
                    // @begin tile-order
                    for (int64_t tn = bn; tn < en; ++tn)
                        for (int64_t tm = bm; tm < em; ++tm)
                    // @end tile-order
                            micro(panel_a + (tm * k + k0) / DEPTH * MR, panel_b + (tn * k + k0) / DEPTH * NR, kc,
                                  tile + (tm - bm) * MR * LD + (tn - bn) * NR, LD);
                }
                int64_t rows = std::min(em * MR, m) - bm * MR, columns = std::min(en * NR, n) - bn * NR;
                for (int64_t i = 0; i < rows; ++i)
                    for (int64_t j = 0; j < columns; ++j)
                        c[(bm * MR + i) * n + bn * NR + j] = to_bf16(tile[i * LD + j]);
            }
    }
}
"""
kernel = load(SOURCE, defines=TUNABLES, flags=FLAGS)


def custom_kernel(data):
    a, b, c = data
    kernel.gemm(a, b, c, a.shape[0], b.shape[0], a.shape[1])
    return c
