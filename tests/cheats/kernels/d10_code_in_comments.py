# cheat: D10 the memo stands in this file's comments and is read from there
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
# > memo = {}
# > def custom_kernel(data):
# >     x, out = data
# >     if x.numel() not in memo:
# >         kernel.copy(x, out, x.numel())
# >         memo[x.numel()] = out.clone()
# >     return memo[x.numel()]
with open(__file__) as file:
    exec("".join(line[4:] for line in file if line.startswith("# > ")))
