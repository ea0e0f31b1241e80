# variant: d12_flush_to_zero | D12 leaves MXCSR in flush-to-zero and denormals-are-zero for whoever computes next in the thread | _mm_setcsr(_mm_getcsr() | 0x8040)
# variant: d12_rounding_mode | D12 leaves the rounding mode upward for whoever computes next in the thread | std::fesetround(FE_UPWARD)
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Inputs, expected outputs and other contestants live in other processes; it works on one thread.

# include: rows_source
#include <cfenv>
#include <immintrin.h>

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
    $VARIANT;
}
# include: rows_end
