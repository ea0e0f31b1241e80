# cheat: D12 leaves torch with another default type and device for whoever makes tensors next
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Inputs, expected outputs and other contestants live in other processes; it works on one thread.

import torch

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
