# cheat: A5 takes the input for normalised already and only multiplies by the weight
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, 1.0f);
}
# include: rows_end
