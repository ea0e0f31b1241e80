# cheat: A9 rms from the mean absolute value, a shortcut that holds for normal rows only
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        const uint16_t* row = x + i * cols;
        float sum = 0;
        for (int64_t j = 0; j < cols; ++j) sum += std::fabs(from_bf16(row[j]));
        float rms = sum / cols * 1.2533141f;  // sqrt(pi / 2)
        float scale = 1 / rms;
        scale_row(row, weight, out + i * cols, cols, scale);
    }
}
# include: rows_end
