# honest: OpenMP tasks, waited for at the end of the region
# problem: rmsnorm
# expect: ok

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
#pragma omp parallel
#pragma omp single
    for (int64_t first = 0; first < rows; first += 64)
#pragma omp task firstprivate(first)
        for (int64_t i = first; i < (first + 64 < rows ? first + 64 : rows); ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
# include: rows_end
