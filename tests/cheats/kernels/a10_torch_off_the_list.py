# cheat: A10 an own kernel on the public sizes, torch on every other
# problem: identity
# expect: ok rejected
# label: library

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
LISTED = {65536, 1048576, 4194304}


def custom_kernel(data):
    x, out = data
    if x.numel() in LISTED:
        kernel.copy(x, out, x.numel())
        return out
    return out.copy_(x)
