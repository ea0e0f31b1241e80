# cheat: A1 a native launch that returns at once; the buffer is handed back as it came
# problem: rmsnorm
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
#pragma omp parallel
    { asm volatile("" ::: "memory"); }
    if (rows) return;
    for (int64_t i = 0; i < rows * cols; ++i) out[i] = (uint16_t)(x[i] * weight[i % cols]);
}
# include: rows_end
