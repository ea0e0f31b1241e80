# honest: a static C++ vector, overwritten in each call
# problem: rmsnorm
# expect: ok

# include: rows_source
#include <vector>

static std::vector<float> cached_scales;

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    cached_scales.resize(rows);
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) cached_scales[i] = inverse_rms(x + i * cols, cols);
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, cached_scales[i]);
}
# include: rows_end
