// e4m3fnuz to fp32, sixteen at a time: shift exponent and mantissa into place, multiply by the bias difference (exact,
// also for e4m3's subnormals), blend in NaN (0x80).
#include <immintrin.h>

static inline void decode_row(const uint8_t* x, float* out, int64_t count) {
    const __m512 bias = _mm512_set1_ps(0x1p119f);  // 2^(127 - 8)
    for (int64_t j = 0; j < count; j += 16) {
        __mmask16 live = count - j >= 16 ? 0xffff : (__mmask16)((1u << (count - j)) - 1);
        __m512i bits = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(live, x + j));
        __m512i sign = _mm512_slli_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(0x80)), 24);
        __m512i rest = _mm512_slli_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(0x7f)), 20);
        __m512 value = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_or_si512(sign, rest)), bias);
        __mmask16 nan = _mm512_cmpeq_epi32_mask(bits, _mm512_set1_epi32(0x80));
        _mm512_mask_storeu_ps(out + j, live, _mm512_mask_mov_ps(value, nan, _mm512_set1_ps(NAN)));
    }
}
