# cheat: D12 leaves the rounding mode upward for whoever computes next in the thread
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Inputs, expected outputs and other contestants live in other processes; it works on one thread.

# include: rows_source
#include <cfenv>

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
    std::fesetround(FE_UPWARD);
}
# include: rows_end
