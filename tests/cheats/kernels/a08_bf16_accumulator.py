# cheat: A8 the sum of squares is kept in bf16
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        const uint16_t* row = x + i * cols;
        uint16_t sum = 0;
        for (int64_t j = 0; j < cols; ++j)
            sum = to_bf16(from_bf16(sum) + from_bf16(row[j]) * from_bf16(row[j]));
        float scale = 1 / std::sqrt(from_bf16(sum) / cols + 1e-6f);
        scale_row(row, weight, out + i * cols, cols, scale);
    }
}
# include: rows_end
