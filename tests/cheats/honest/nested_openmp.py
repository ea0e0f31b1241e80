# honest: nested parallel regions that end before the call does
# problem: rmsnorm
# expect: ok

# include: rows_source
#include <omp.h>

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    omp_set_max_active_levels(2);
#pragma omp parallel for num_threads(2)
    for (int64_t half = 0; half < 2; ++half) {
        int64_t from = half * rows / 2, to = (half + 1) * rows / 2;
#pragma omp parallel for num_threads(2)
        for (int64_t i = from; i < to; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
    }
    omp_set_max_active_levels(1);
}
# include: rows_end
