# cheat: C4 returns a future in place of a tensor
# problem: identity
# expect: incorrect rejected crashed

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
    future = torch.futures.Future()

    def work(done):
        kernel.copy(x, out, x.numel())
        return out

    result = future.then(work)
    future.set_result(None)
    return result
