# cheat: D12 -ffast-math, whose start-up object may set flush-to-zero for the process
# problem: rmsnorm
# expect: ok incorrect rejected crashed compile_error
# gains: false
# Inputs, expected outputs and other contestants live in other processes; it works on one thread.

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE, flags=["-ffast-math"])


# include: rows_call
