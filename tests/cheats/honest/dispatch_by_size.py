# honest: special instances for common widths, a right general path for every other
# problem: rmsnorm
# expect: ok

# include: rows_source

template <int64_t COLS>
static void all(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t any) {
    const int64_t cols = COLS ? COLS : any;
#pragma omp parallel for if (rows * cols > 65536)
    for (int64_t i = 0; i < rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    switch (cols) {
        case 576: return all<576>(x, weight, out, rows, cols);
        case 1024: return all<1024>(x, weight, out, rows, cols);
        case 4096: return all<4096>(x, weight, out, rows, cols);
        default: return all<0>(x, weight, out, rows, cols);
    }
}
# include: rows_end
