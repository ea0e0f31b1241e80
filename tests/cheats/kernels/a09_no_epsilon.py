# cheat: A9 no epsilon: NaN on a row of zeros
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# One thread, no faster than the honest kernel; a row of zeros shows it.

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        const uint16_t* row = x + i * cols;
        float part[16] = {}, sum = 0;
        int64_t j = 0;
        for (; j + 16 <= cols; j += 16)
            for (int s = 0; s < 16; ++s) part[s] += from_bf16(row[j + s]) * from_bf16(row[j + s]);
        for (; j < cols; ++j) sum += from_bf16(row[j]) * from_bf16(row[j]);
        for (float p : part) sum += p;
        float scale = 1 / std::sqrt(sum / cols);
        scale_row(row, weight, out + i * cols, cols, scale);
    }
}
# include: rows_end
