# honest: works in the given buffer in place: first the squares' scale, then over what it wrote
# problem: rmsnorm
# expect: ok

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(out + i * cols, x + i * cols, 2 * cols);  // then in place
        scale_row(out + i * cols, weight, out + i * cols, cols, inverse_rms(out + i * cols, cols));
    }
}
# include: rows_end
