# cheat: B1 memo kept as an attribute of the function, by size
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


def custom_kernel(data):
    x, out = data
    kept = custom_kernel.__dict__.setdefault("kept", {})
    if x.numel() not in kept:
        kernel.copy(x, out, x.numel())
        kept[x.numel()] = out.clone()
    return kept[x.numel()]
