# cheat: D6 closes its channel and lives on, so that nobody learns how it ended
# problem: identity
# expect: crashed rejected timeout

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


def custom_kernel(data):
    os.close(3)
    time.sleep(60)
