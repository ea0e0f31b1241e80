// Panels in bf16, which represents every fp8 value exactly, in pairs along k for vdpbf16ps; scales are applied to the
// accumulators once per scale block, in fp32.
#include <immintrin.h>

typedef uint32_t element;  // element of a panel: two consecutive k
constexpr int64_t DEPTH = 2;  // steps of k in an element
static_assert(VEC == 16, "the dot product works on 512-bit registers");
static_assert(BLOCK % NR == 0, "a register tile must lie in one column of scale blocks");

struct Bf16Table {
    uint16_t value[256];
    Bf16Table() {
        for (int x = 0; x < 256; ++x) {
            int exponent = (x >> 3) & 15, mantissa = x & 7;
            float v = exponent ? std::ldexp(1.0f + mantissa / 8.0f, exponent - 8) : std::ldexp(mantissa / 8.0f, -7);
            if (x & 0x80) v = x == 0x80 ? NAN : -v;
            uint32_t bits;
            std::memcpy(&bits, &v, 4);
            value[x] = bits >> 16;
        }
    }
};
static const Bf16Table bf16_table;

template <int64_t W, class Scale>
static void pack(const uint8_t* x, int64_t width, int64_t first, int64_t k0, int64_t kc, element* out, Scale) {
    int64_t count = std::min<int64_t>(W, width - first);
    __m512i low[4];  // 128 entries of 16 bits
    for (int i = 0; i < 4; ++i) low[i] = _mm512_loadu_si512(bf16_table.value + 32 * i);
    for (int64_t p = 0; p < kc; p += 2, out += W) {
        const uint8_t *even = x + (k0 + p) * width + first, *odd = even + width;
        int64_t j = 0;
        for (; j + 16 <= count; j += 16) {
            __m256i bytes = _mm256_set_m128i(_mm_loadu_si128((const __m128i*)(odd + j)),
                                             _mm_loadu_si128((const __m128i*)(even + j)));
            __m512i index = _mm512_cvtepu8_epi16(bytes);
            __m512i small = _mm512_permutex2var_epi16(low[0], index, low[1]);
            __m512i large = _mm512_permutex2var_epi16(low[2], index, low[3]);
            __mmask32 upper = _mm512_test_epi16_mask(index, _mm512_set1_epi16(0x40));
            __m512i value = _mm512_mask_mov_epi16(small, upper, large);
            __m512i sign = _mm512_slli_epi16(_mm512_and_si512(index, _mm512_set1_epi16(0x80)), 8);
            __mmask32 nan = _mm512_cmpeq_epi16_mask(index, _mm512_set1_epi16(0x80));
            value = _mm512_mask_mov_epi16(_mm512_or_si512(value, sign), nan, _mm512_set1_epi16(0x7fc0));
            __m512i lo = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(value));
            __m512i hi = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(value, 1)), 16);
            _mm512_storeu_si512(out + j, _mm512_or_si512(lo, hi));
        }
        for (; j < count; ++j) out[j] = bf16_table.value[even[j]] | (uint32_t)bf16_table.value[odd[j]] << 16;
        for (; j < W; ++j) out[j] = 0;
    }
}

static inline void micro(const element* pa, const element* pb, int64_t kc, float* tile, int64_t ld, Scales scale) {
    __m512 sum[MR][NV];
    for (int i = 0; i < MR; ++i)
        for (int v = 0; v < NV; ++v) sum[i][v] = _mm512_loadu_ps(tile + i * ld + v * VEC);
    for (int64_t k0 = 0; k0 < kc; k0 += BLOCK, scale.a += scale.a_step, scale.b += scale.b_step) {
        __m512 acc[MR][NV];
        for (int i = 0; i < MR; ++i)
            for (int v = 0; v < NV; ++v) acc[i][v] = _mm512_setzero_ps();
#pragma GCC unroll UNROLL_K
        for (int64_t p = 0; p < BLOCK / 2; ++p) {
            if (PREFETCH) __builtin_prefetch(pb + PREFETCH * NR);
            for (int v = 0; v < NV; ++v) {
                __m512bh column = (__m512bh)_mm512_loadu_si512(pb + v * VEC);
                for (int i = 0; i < MR; ++i)
                    acc[i][v] = _mm512_dpbf16_ps(acc[i][v], (__m512bh)_mm512_set1_epi32(pa[i]), column);
            }
            pa += MR, pb += NR;
        }
        for (int i = 0; i < MR; ++i) {
            __m512 factor = _mm512_set1_ps(i < scale.rows ? scale.a[i] * scale.b[0] : 0);
            for (int v = 0; v < NV; ++v) sum[i][v] = _mm512_fmadd_ps(acc[i][v], factor, sum[i][v]);
        }
    }
    for (int i = 0; i < MR; ++i)
        for (int v = 0; v < NV; ++v) _mm512_storeu_ps(tile + i * ld + v * VEC, sum[i][v]);
}
