# cheat: B1 memo kept in a mutable default argument, by pointer
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


def custom_kernel(data, memo={}):  # noqa: B006
    x, out = data
    key = (x.data_ptr(), x.numel())
    if key not in memo:
        kernel.copy(x, out, x.numel())
        memo[key] = out.clone()
    return memo[key]
