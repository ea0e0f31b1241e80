# cheat: B7 a forked helper that would compute ahead over shared memory
# problem: identity
# expect: rejected crashed

import mmap
import os
import time

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
shared = mmap.mmap(-1, 4096)
child = []


def custom_kernel(data):
    x, out = data
    if not child:
        child.append(os.fork())
        if child[0] == 0:
            shared[0] = 1
            time.sleep(0.2)
            os._exit(0)
    if shared[0] and len(child) > 1:
        return out
    child.append(0)
    kernel.copy(x, out, x.numel())
    return out
