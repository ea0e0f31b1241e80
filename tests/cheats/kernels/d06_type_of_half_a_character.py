# cheat: D6 says that its output is of a type which cannot be written
# problem: identity
# expect: incorrect rejected

import sys

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
    describe = outputs._describe
    outputs._describe = lambda *a: {**describe(*a), "kind": "object", "type": "\ud800"}


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
