# cheat: E4 a kernel that only copies what torch has computed
# problem: rmsnorm
# expect: ok rejected
# label: library

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
    x, weight, out = data
    y = x.float()
    y = (y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight).bfloat16()
    kernel.copy(y, out, y.numel())
    return out
