# variant: a05_rms_taken_as_one | A5 takes the input for normalised already and only multiplies by the weight | 1.0f
# variant: a06_half_reduction | A6 the mean square of the first half of a row stands for that of the row | inverse_rms(x + i * cols, cols / 2 + 1)
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, $VARIANT);
}
# include: rows_end
