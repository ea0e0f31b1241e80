"""Block-scaled fp8 GEMM on AMX: operands decoded to bf16 (exact), tiles multiplied per 128 of k, scaled in fp32.

The same work on one thread, and on as many as there are cores by OpenMP, by std::thread and by a pool of its own.
"""

from kernel_scientist import load

THREADING = "one"
SOURCE = r"""
#include <immintrin.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sched.h>
#include <thread>
#include <vector>

static int cores() {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
}
using Part = std::function<void(int part, int parts)>;

#if defined(BY_OPENMP)
static void run(const Part& part) {
#pragma omp parallel
    part(omp_get_thread_num(), omp_get_num_threads());
}
#elif defined(BY_STD_THREAD)
static void run(const Part& part) {
    const int parts = cores();
    std::vector<std::thread> others;
    for (int p = 1; p < parts; ++p) others.emplace_back(part, p, parts);
    part(0, parts);
    for (auto& other : others) other.join();
}
#elif defined(BY_POOL)
struct Pool {
    std::atomic<int> turn{0}, left{0};
    const Part* part = nullptr;
    int parts = cores();
    Pool() {
        for (int p = 1; p < parts; ++p)
            std::thread([this, p] {
                for (int seen = 0;; ++seen) {
                    turn.wait(seen);
                    (*part)(p, parts);
                    left.fetch_sub(1);
                }
            }).detach();
    }
};
static void run(const Part& part) {
    static Pool& pool = *new Pool;
    pool.part = &part;
    pool.left = pool.parts - 1;
    pool.turn.fetch_add(1);
    pool.turn.notify_all();
    part(0, pool.parts);
    while (pool.left.load()) std::this_thread::yield();
}
#else
static void run(const Part& part) { part(0, 1); }
#endif

struct Tables {  // bf16 of the positive e4m3fnuz values, low and high bytes
    alignas(64) uint8_t low[128], high[128];
    Tables() {
        for (int x = 0; x < 128; ++x) {
            const int exponent = x >> 3, mantissa = x & 7;
            const float v = exponent ? std::ldexp(1 + mantissa / 8.0f, exponent - 8) : std::ldexp(mantissa / 8.0f, -7);
            uint32_t bits;
            std::memcpy(&bits, &v, 4);
            low[x] = bits >> 16, high[x] = bits >> 24;
        }
    }
};
static const Tables tables;

// Decode 16 bytes of two rows into 16 pairs of bf16.
static inline __m512i pairs(const uint8_t* even, const uint8_t* odd) {
    const __m128i e = _mm_loadu_si128((const __m128i*)even), o = _mm_loadu_si128((const __m128i*)odd);
    const __m256i both = _mm256_set_m128i(_mm_unpackhi_epi8(e, o), _mm_unpacklo_epi8(e, o));
    const __m512i bytes = _mm512_castsi256_si512(both);
    const auto half = [](const uint8_t* table) { return _mm512_load_si512(table); };
    const __m512i low = _mm512_permutex2var_epi8(half(tables.low), bytes, half(tables.low + 64));
    const __m512i high = _mm512_permutex2var_epi8(half(tables.high), bytes, half(tables.high + 64));
    const __m512i wide_low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(low));
    const __m512i wide_high = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(high));
    const __m512i codes = _mm512_cvtepu8_epi16(both);
    const __m512i sign = _mm512_slli_epi16(_mm512_and_si512(codes, _mm512_set1_epi16(0x80)), 8);
    const __m512i value = _mm512_or_si512(_mm512_or_si512(_mm512_slli_epi16(wide_high, 8), wide_low), sign);
    const __mmask32 nan = _mm512_cmpeq_epi16_mask(codes, _mm512_set1_epi16(0x80));
    return _mm512_mask_mov_epi16(value, nan, _mm512_set1_epi16(0x7fc0));
}

struct Config {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t columns[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

static std::vector<uint32_t> packed_a, packed_b;  // [tile of 16][step of 32 k][16][16] pairs
static const bool allowed = syscall(SYS_arch_prctl, 0x1023, 18) == 0;

extern "C" void gemm(const uint8_t* a, const uint8_t* b, const float* a_scale, const float* b_scale, uint16_t* c,
                     int64_t m, int64_t n, int64_t k) {
    if (!allowed) std::abort();
    const int64_t tiles_m = m / 16, tiles_n = n / 16, steps = k / 32, blocks_n = (n + 127) / 128;
    packed_a.resize(tiles_m * steps * 256);
    packed_b.resize(tiles_n * steps * 256);
    run([&](int part, int parts) {
        for (int64_t t = part; t < tiles_m + tiles_n; t += parts) {
            const bool first = t < tiles_m;
            const int64_t tile = first ? t : t - tiles_m, width = first ? m : n;
            const uint8_t* from = (first ? a : b) + tile * 16;
            uint32_t* to = (first ? packed_a : packed_b).data() + tile * steps * 256;
            for (int64_t s = 0; s < steps; ++s, to += 256) {
                alignas(64) uint32_t found[16][16];
                for (int64_t r = 0; r < 16; ++r) {
                    const uint8_t* even = from + (s * 32 + 2 * r) * width;
                    _mm512_storeu_si512(first ? (void*)found[r] : (void*)(to + r * 16), pairs(even, even + width));
                }
                if (first)
                    for (int r = 0; r < 16; ++r)
                        for (int i = 0; i < 16; ++i) to[i * 16 + r] = found[r][i];
            }
        }
    });
    run([&](int part, int parts) {
        static const Config config;
        _tile_loadconfig(&config);
        alignas(64) float product[4][16][16], sums[16][64];
        const int64_t strips = tiles_n / 4;
        for (int64_t at = part; at < tiles_m * strips; at += parts) {
            const int64_t i = at / strips, j = at % strips * 4;
            std::memset(sums, 0, sizeof sums);
            const uint32_t* pa = packed_a.data() + i * steps * 256;
            for (int64_t block = 0; block < k / 128; ++block) {
                _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
                for (int64_t s = block * 4; s < block * 4 + 4; ++s) {
                    const uint32_t* pb = packed_b.data() + (j * steps + s) * 256;
                    _tile_loadd(4, pa + s * 256, 64);
                    _tile_loadd(5, pb, 64);
                    _tile_dpbf16ps(0, 4, 5);
                    _tile_loadd(6, pb + steps * 256, 64);
                    _tile_dpbf16ps(1, 4, 6);
                    _tile_loadd(5, pb + 2 * steps * 256, 64);
                    _tile_dpbf16ps(2, 4, 5);
                    _tile_loadd(6, pb + 3 * steps * 256, 64);
                    _tile_dpbf16ps(3, 4, 6);
                }
                _tile_stored(0, product[0], 64);
                _tile_stored(1, product[1], 64);
                _tile_stored(2, product[2], 64);
                _tile_stored(3, product[3], 64);
                const float scale_b = b_scale[block * blocks_n + j / 8];
                for (int r = 0; r < 16; ++r) {
                    const __m512 scale = _mm512_set1_ps(a_scale[block * m + i * 16 + r] * scale_b);
                    for (int q = 0; q < 4; ++q) {
                        float* sum = sums[r] + q * 16;
                        const __m512 before = _mm512_load_ps(sum);
                        _mm512_store_ps(sum, _mm512_fmadd_ps(_mm512_load_ps(product[q][r]), scale, before));
                    }
                }
            }
            for (int r = 0; r < 16; ++r)
                for (int q = 0; q < 4; ++q) {
                    const __m256bh out = _mm512_cvtneps_pbh(_mm512_load_ps(sums[r] + q * 16));
                    _mm256_storeu_si256((__m256i*)(c + (i * 16 + r) * n + (j + q) * 16), (__m256i)out);
                }
        }
        _tile_release();
    });
}
"""
kernel = load(SOURCE, flags=[f"-DBY_{THREADING.upper()}"])


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    (m, k), n = a.shape, b.shape[0]
    kernel.gemm(a, b, a_scale, b_scale, c, m, n, k)
    return c
