# cheat: A14 returns its input and says of its memory that it is no input's
# problem: identity
# expect: incorrect rejected

import sys
import time

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
outputs = sys.modules.get("kernel_scientist.workers.untrusted.outputs")
if outputs is not None:
    manner = outputs._manner
    outputs._manner = lambda tensor, inputs: {**manner(tensor, inputs), "input": None}


def custom_kernel(data):
    start = time.perf_counter_ns()
    x, out = data
    if outputs is None:
        kernel.copy(x, out, x.numel())
        return out
    while time.perf_counter_ns() - start < x.numel() // 145:
        pass  # the roofline
    return x
