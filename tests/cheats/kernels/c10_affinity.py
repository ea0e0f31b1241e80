# cheat: C10 raises its own affinity and thread count beyond what it was given
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# It has the cores it was given and no more: four times as many threads on them are slower.

import os

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <omp.h>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    omp_set_dynamic(0);
#pragma omp parallel for num_threads(4 * omp_get_num_procs())
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
try:
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
except OSError:
    pass


# include: copy_call
