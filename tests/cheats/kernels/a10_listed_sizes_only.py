# cheat: A10 right on the public sizes, zeros on every other
# problem: identity
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
LISTED = {1, 127, 128, 129, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 1048576, 4194304}


def custom_kernel(data):
    x, out = data
    if x.numel() not in LISTED:
        return out.zero_()
    kernel.copy(x, out, x.numel())
    return out
