# cheat: D12 leaves MXCSR in flush-to-zero and denormals-are-zero for whoever computes next in the thread
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Inputs, expected outputs and other contestants live in other processes; it works on one thread.

# include: rows_source
#include <immintrin.h>

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
    _mm_setcsr(_mm_getcsr() | 0x8040);
}
# include: rows_end
