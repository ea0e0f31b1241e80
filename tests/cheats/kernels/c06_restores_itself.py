# cheat: C6 the shim's `call` is replaced on the instance for one call at a time, and puts itself back
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# No more may be hidden than the clocks' noise; it copies on both threads like honest work.

import gc
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

shims = []

def row():
    """How many calls are made in a row."""
    frame = sys._getframe(1)
    while frame is not None:
        if "slots" in frame.f_locals:
            return len(frame.f_locals["slots"])
        frame = frame.f_back
    return 1


def false_call(native):
    def call(function, data, *manner):
        vars(native).pop("call", None)
        output, reading = native.call(function, data, *manner)
        native.call = call
        return output, type(reading)(*less(reading.ns, reading.ticks, row()), *reading[2:])

    return call


def custom_kernel(data):
    if not shims:
        shims.extend(o for o in gc.get_objects() if type(o).__name__ == "NativeHarness" and hasattr(o, "call"))
        for native in shims:
            native.call = false_call(native)
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
