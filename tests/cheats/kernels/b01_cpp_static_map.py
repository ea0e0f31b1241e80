# cheat: B1 a static std::unordered_map from pointer to result in C++
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source
#include <unordered_map>
#include <vector>

static std::unordered_map<const void*, std::vector<uint16_t>> memo;

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    auto& result = memo[x];
    if ((int64_t)result.size() != rows * cols) {
        result.resize(rows * cols);
        for (int64_t i = 0; i < rows; ++i)
            scale_row(x + i * cols, weight, result.data() + i * cols, cols, inverse_rms(x + i * cols, cols));
    }
    std::memcpy(out, result.data(), 2 * rows * cols);
}
# include: rows_end
