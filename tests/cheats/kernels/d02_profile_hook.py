# cheat: D2 a profile hook does the work of short calls right after the native clock was read for the second time
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# No more may be hidden than the clocks' noise; it copies on one thread.

import sys

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
pending = []


def after(frame, event, argument):
    if pending and event == "return" and frame.f_code.co_name == "call" and "stamps" in frame.f_locals:
        x, out = pending.pop()
        kernel.copy(x, out, x.numel())


def timed():
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "call" and "stamps" in frame.f_locals:
            return True
        frame = frame.f_back
    return False


sys.setprofile(after)


def custom_kernel(data):
    x, out = data
    if x.numel() < 200_000 and timed():  # a longer one would be missed
        pending.append((x, out))
    else:
        kernel.copy(x, out, x.numel())
    return out
