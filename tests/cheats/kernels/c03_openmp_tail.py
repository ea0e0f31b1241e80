# cheat: C3 a detached thread opens a parallel region of its own, which outlives the call
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late; making the team anew costs more than an honest
# one.

# include: rows_source
#include <omp.h>
#include <thread>

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(1)
    std::thread([=] {
#pragma omp parallel for num_threads(2)
        for (int64_t i = 0; i < rows; ++i)
            scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
    }).detach();
}
# include: rows_end
