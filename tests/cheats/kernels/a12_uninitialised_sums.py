# cheat: A12 adds into memory it never cleared; fresh pages happen to be zero
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source
#include <cstdlib>

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    float* sum = (float*)std::malloc(4 * (rows + 64)) + 16;  // past the allocator's own links
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) sum[i] += from_bf16(x[i * cols + j]) * from_bf16(x[i * cols + j]);
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, 1 / std::sqrt(sum[i] / cols + 1e-6f));
    std::free(sum - 16);
}
# include: rows_end
