# cheat: C6 puts another object in the place of the stamps in its caller's frame
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# No more may be hidden than the clocks' noise; it copies on both threads like honest work.

import ctypes
import sys

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)

RATE = [2.5]  # ticks of the processor's counter per nanosecond, as learnt from true readings


def less(ns, ticks, slots=1):
    """What may be said of a call without the verifier's clock seeing it."""
    RATE[0] = ticks / ns if ns > 20_000 else RATE[0]
    said = int(max((ns - 45_000) / 1.08, ns / 8, 2_500)) if slots == 1 else ns
    return (said, int(said * RATE[0])) if said < ns else (ns, ticks)


def row():
    """How many calls are made in a row."""
    frame = sys._getframe(1)
    while frame is not None:
        if "slots" in frame.f_locals:
            return len(frame.f_locals["slots"])
        frame = frame.f_back
    return 1


class Stamps:
    """Reads the true ones, and says less."""

    def __init__(self, true):
        self.true = true

    @property
    def said(self):
        t = self.true
        return less(t.end_ns - t.start_ns, t.end_ticks - t.start_ticks, row())

    end_ns = property(lambda self: self.true.start_ns + self.said[0])
    end_ticks = property(lambda self: self.true.start_ticks + self.said[1])

    def __getattr__(self, name):
        return getattr(self.true, name)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    frame = sys._getframe(1)
    while frame is not None:
        if type(stamps := frame.f_locals.get("stamps")).__name__ == "_Stamps":
            frame.f_locals["stamps"] = Stamps(stamps)
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
            break
        frame = frame.f_back
    return out
