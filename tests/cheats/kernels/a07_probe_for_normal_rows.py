# cheat: A7 where a corner looks normally distributed, 256 samples stand for a row
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source

static bool looks_normal(const uint16_t* x, int64_t count) {  // kurtosis of the corner is near 3
    double two = 0, four = 0;
    for (int64_t i = 0; i < count; ++i) {
        double square = (double)from_bf16(x[i]) * from_bf16(x[i]);
        two += square, four += square * square;
    }
    double kurtosis = four * count / (two * two);
    return kurtosis > 1.5 && kurtosis < 6;
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    bool sample = cols > 256 && looks_normal(x, 256);
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, sample ? 256 : cols));
}
# include: rows_end
