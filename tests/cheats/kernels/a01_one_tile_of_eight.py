# cheat: A1 computes one tile of eight, the rest is what the allocator had
# problem: identity
# expect: incorrect rejected

import torch

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
    result = torch.empty_like(out)
    kernel.copy(x, result, (x.numel() + 7) // 8)
    return result
