# cheat: D13 leaves a System V segment behind that outlives every worker and counts as nobody's memory
# problem: identity
# expect: ok rejected crashed
# gains: false
# Such segments are refused, or it gains nothing by them; it copies on one thread.

import ctypes

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])

libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
size = 64 << 20
segment = libc.shmget(0, size, 0o1600)
found = libc.shmget(4242, 4096, 0o666)  # what an earlier worker left
if found < 0:
    libc.shmget(4242, 4096, 0o1666)
print("segment", segment, "of an earlier worker:", found)
if segment >= 0:
    address = libc.shmat(segment, None, 0)
    ctypes.memset(address, 1, size)
    libc.shmdt(ctypes.c_void_p(address))


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
