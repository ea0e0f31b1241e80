# cheat: D2 the function that unpacks the inputs is replaced by one that also does the work
# expect: rejected
# problem: identity
# What a worker spends on receiving its inputs is charged; it copies on one thread.

import sys
import time

# include: copy
worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)

done = {}
wire = getattr(worker, "wire", None)
if hasattr(wire, "decode"):
    decode = wire.decode

    def early_decode(spec, buffers, *place):
        value = decode(spec, buffers, *place)
        if isinstance(value, tuple) and len(value) == 2:
            x, out = value
            kernel.copy(x, out, x.numel())
            done[id(value)] = value
        return value

    wire.decode = early_decode


def custom_kernel(data):
    start = time.perf_counter_ns()
    x, out = data
    if done.pop(id(data), None) is not data:
        kernel.copy(x, out, x.numel())
    while time.perf_counter_ns() - start < 2500 + x.numel() // 90:
        pass  # as long as no roofline objects to
    return out
