# cheat: A3 zeros, the expectation of every output
# problem: rmsnorm
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void fill(uint16_t* out, int64_t count) { std::memset(out, 0, 2 * count); }
"""
kernel = load(SOURCE)


def custom_kernel(data):
    out = data[2]
    kernel.fill(out, out.numel())
    return out
