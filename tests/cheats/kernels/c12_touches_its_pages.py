# cheat: C12 touches every page of its inputs when it is asked for a call, before it stands before the gate
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# case: 0 1

import sys

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
extern "C" void touch(const uint16_t* p, int64_t size) {
    uint16_t sum = 0;
    for (int64_t i = 0; i < size; i += 2048) sum += ((const volatile uint16_t*)p)[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def worker():
    frame = sys._getframe()
    while frame is not None:
        if type(found := frame.f_locals.get("self")).__name__ == "Worker":
            return found
        frame = frame.f_back
    return None


def install(W):
    go = W._go

    def warm(slots):
        if len(slots) == 1:
            x, out = W.data[slots[0]]
            for t in (x, out):
                kernel.touch(t, t.numel())
        return go(slots)

    W._go = warm


if (W := worker()) is not None:
    install(W)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
