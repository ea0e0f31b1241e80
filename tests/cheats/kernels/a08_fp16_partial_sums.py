# cheat: A8 thirty-two partial sums in fp16: within the tolerance on public inputs, they overflow on large ones
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# One thread, no faster than the honest kernel; rows of large magnitude (1e3) overflow fp16 and show it.

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        const uint16_t* row = x + i * cols;
        _Float16 part[32] = {};
        int64_t j = 0;
        for (; j + 32 <= cols; j += 32)
            for (int s = 0; s < 32; ++s) part[s] += (_Float16)from_bf16(row[j + s]) * (_Float16)from_bf16(row[j + s]);
        float sum = 0;
        for (; j < cols; ++j) sum += from_bf16(row[j]) * from_bf16(row[j]);
        for (_Float16 p : part) sum += (float)p;
        float scale = 1 / std::sqrt(sum / cols + 1e-6f);
        scale_row(row, weight, out + i * cols, cols, scale);
    }
}
# include: rows_end
