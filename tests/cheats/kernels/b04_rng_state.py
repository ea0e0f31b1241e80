# cheat: B4 takes the next input from the state of torch's own generator
# problem: identity
# expect: ok incorrect rejected
# gains: false
# The worker's generators make no input; it copies on one thread.

import torch

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
answers = {}


def foresee(size):
    state = torch.get_rng_state()
    x = torch.rand(size).to(torch.float16)
    torch.set_rng_state(state)
    answers[(size, *x[:8].tolist())] = x


for size in (65536, 1048576, 4194304):
    foresee(size)


def custom_kernel(data):
    x, out = data
    known = answers.get((x.numel(), *x[:8].tolist()))
    if known is not None:
        return known
    kernel.copy(x, out, x.numel())
    return out
