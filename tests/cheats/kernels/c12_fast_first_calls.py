# cheat: C12 the first ten calls come from a memo, so that a rule on few samples stops early
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
counts, memo = {}, {}


def custom_kernel(data):
    x, out = data
    n = x.numel()
    counts[n] = counts.get(n, 0) + 1
    if 1 < counts[n] < 11:
        return memo[n]
    kernel.copy(x, out, n)
    memo[n] = out.clone()
    return out
