# cheat: B1 memo kept in a context variable, by size
# problem: identity
# expect: incorrect rejected

import contextvars

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
kept = contextvars.ContextVar("kept", default=())


def custom_kernel(data):
    x, out = data
    for answer in kept.get():
        if answer.shape == x.shape:
            return answer
    kernel.copy(x, out, x.numel())
    kept.set((*kept.get(), out.clone()))
    return out
