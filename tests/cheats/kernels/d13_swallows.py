# cheat: D13 swallows its own failure and returns the buffer
# problem: identity
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    if (size > 1000) return;  // stands for a launch that fails and is not looked at
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)


def custom_kernel(data):
    x, out = data
    try:
        kernel.copy(x, out, x.numel())
        assert x.numel() <= 1000
    except Exception:
        pass
    return out
