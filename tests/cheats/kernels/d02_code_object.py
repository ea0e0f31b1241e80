# cheat: D2 the code object of the shim's `call` is exchanged; the function stays the same object
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# No more may be hidden than the clocks' noise; it copies on both threads like honest work.

import sys
import types

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE)
native = sys.modules.get("kernel_scientist.workers.native")
NativeHarness = getattr(native, "NativeHarness", None)

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


def replacement(self, kernel, data):
    output, reading = self._kept_call(kernel, data)
    return output, Reading(*self._less(reading.ns, reading.ticks, self._row()), *reading[2:])


if hasattr(NativeHarness, "call") and not NativeHarness.call.__code__.co_freevars:
    kept = NativeHarness.call
    NativeHarness._kept_call = types.FunctionType(kept.__code__, kept.__globals__, "_kept_call")
    NativeHarness._less, NativeHarness._row = staticmethod(less), staticmethod(row)
    kept.__code__ = replacement.__code__


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
