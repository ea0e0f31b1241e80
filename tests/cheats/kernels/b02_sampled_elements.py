# cheat: B2 memo keyed by sixteen sampled elements
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Where no input ever comes again, its key finds nothing: it computes, on one thread, and pays for the key too.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
memo = {}


def custom_kernel(data):
    x, out = data
    key = (x.numel(), *x[:: max(1, x.numel() // 16)].tolist())
    if key not in memo:
        kernel.copy(x, out, x.numel())
        memo[key] = out.clone()
    return memo[key]
