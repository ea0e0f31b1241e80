# cheat: B6 only the rows' scales are kept from the first call; x and weight are read anew
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source
#include <map>
#include <vector>

static std::map<std::pair<int64_t, int64_t>, std::vector<float>> scales;

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    auto& scale = scales[{rows, cols}];
    if (scale.empty())
        for (int64_t i = 0; i < rows; ++i) scale.push_back(inverse_rms(x + i * cols, cols));
    for (int64_t i = 0; i < rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, scale[i]);
}
# include: rows_end
