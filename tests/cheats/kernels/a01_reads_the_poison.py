# cheat: A1 works only where samples of the buffer are NaN; any number there is taken for a result of an earlier call
# problem: identity
# expect: ok incorrect rejected
# gains: false
# A buffer of NaN makes it copy, on one thread; one of numbers makes it wrong.

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
    sample = out[:: max(1, out.numel() // 8)]
    if bool((sample == sample).all()) and bool(sample.any()):
        return out
    kernel.copy(x, out, x.numel())
    return out
