# honest: two OpenMP sections, one of which prefaults while the other computes
# problem: rmsnorm
# expect: ok

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    int64_t half = rows / 2;
#pragma omp parallel sections
    {
#pragma omp section
        for (int64_t i = 0; i < half; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
#pragma omp section
        for (int64_t i = half; i < rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
    }
}
# include: rows_end
