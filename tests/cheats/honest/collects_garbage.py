# honest: gc.collect in each call
# problem: identity
# expect: ok

import gc


from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    std::memcpy(out, x, 2 * size);
}
"""
kernel = load(SOURCE)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    gc.collect()
    return out
