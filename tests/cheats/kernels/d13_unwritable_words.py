# cheat: D13 raises an error whose words no file can hold
# problem: identity
# expect: crashed rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def custom_kernel(data):
    raise ValueError("\ud800 is half a character")
