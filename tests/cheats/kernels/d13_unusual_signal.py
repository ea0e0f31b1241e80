# cheat: D13 dies of a signal that has no name
# problem: identity
# expect: crashed rejected

import signal
import threading

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def custom_kernel(data):
    signal.pthread_kill(threading.get_ident(), 40)
    return data[1]
