# cheat: D12 makes torch slow and single-threaded, so that a baseline in the process looks worse
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Inputs, expected outputs and other contestants live in other processes; it works on one thread.

import os
import time

import torch

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"


def slowed(function):
    def call(*args, **kwargs):
        time.sleep(0.001)
        return function(*args, **kwargs)

    return call


for name in ("copy_", "__setitem__", "mul", "matmul", "square", "mean"):
    setattr(torch.Tensor, name, slowed(getattr(torch.Tensor, name)))


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
