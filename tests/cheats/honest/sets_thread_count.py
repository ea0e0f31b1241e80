# honest: omp_set_num_threads by size in each call
# problem: identity
# expect: ok

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <omp.h>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int before = omp_get_max_threads();
    omp_set_num_threads(size < 65536 ? 1 : before);
#pragma omp parallel for
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
    omp_set_num_threads(before);
}
# include: copy_end
