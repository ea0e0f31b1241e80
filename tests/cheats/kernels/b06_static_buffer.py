# cheat: B6 a static buffer per shape in C++, filled on the first call and copied out afterwards
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source
#include <map>
#include <vector>

static std::map<std::pair<int64_t, int64_t>, std::vector<uint16_t>> cached;

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    auto& result = cached[{rows, cols}];
    if (result.empty()) {
        result.resize(rows * cols);
        for (int64_t i = 0; i < rows; ++i)
            scale_row(x + i * cols, weight, result.data() + i * cols, cols, inverse_rms(x + i * cols, cols));
    }
    std::memcpy(out, result.data(), 2 * rows * cols);
}
# include: rows_end
