# honest: the shortest honest kernel: one pass into the given buffer, which it returns
# problem: identity
# expect: ok

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
