# cheat: C9 says 20 us less of each single call: what passes unseen beside a call
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
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
FREE = 20000


def worker():
    frame = sys._getframe()
    while frame is not None:
        if type(found := frame.f_locals.get("self")).__name__ == "Worker":
            return found
        frame = frame.f_back
    return None


def install(native):
    true = native.call

    def call(function, data, gate=-1, bell=-1, pin=False):
        output, r = true(function, data, gate, bell, pin)
        if gate >= 0 and bell >= 0 and pin:
            said = max(data[0].numel() // 140, 1000, int((r.ns - FREE) / 1.02))
            if said < r.ns:
                r = r._replace(ns=said, ticks=r.ticks * said // r.ns)
        return output, r

    native.call = call


if (W := worker()) is not None:
    install(W.native)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
