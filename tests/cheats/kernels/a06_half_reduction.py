# cheat: A6 the mean square of the first half of a row stands for that of the row
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols / 2 + 1));
}
# include: rows_end
