# cheat: A11 the first values of a published case as a table in C++; the rest of it is then known too
# problem: identity
# expect: ok incorrect rejected
# gains: false
# The table fits only the published seed; timed calls have secret ones.

import torch

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

constexpr uint16_t KNOWN[8] = {0x3b0f, 0x3b52, 0x3620, 0x3bad, 0x363f, 0x38cf, 0x341b, 0x3a59};  // seed 42

extern "C" void known(const uint16_t* x, int64_t size, int64_t* yes) {
    *yes = size >= 8;
    for (int i = 0; i < 8 && *yes; ++i) *yes = x[i] == KNOWN[i];
}
# include: copy_loop_load
stored = {}


def custom_kernel(data):
    x, out = data
    yes = torch.zeros(1, dtype=torch.int64)
    kernel.known(x, x.numel(), yes)
    if int(yes) and x.numel() in stored:
        return stored[x.numel()]
    kernel.copy(x, out, x.numel())
    if int(yes):
        stored[x.numel()] = out.clone()
    return out
