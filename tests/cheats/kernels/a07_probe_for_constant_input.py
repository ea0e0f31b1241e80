# cheat: A7 a constant prefix is taken for a constant vector
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Right on the public distribution and no faster there; an input with a constant prefix shows it.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def custom_kernel(data):
    x, out = data
    head = x[:256]
    if bool((head == head[0]).all()) and x.numel() > 256:
        return out.fill_(float(x[0]))
    kernel.copy(x, out, x.numel())
    return out
