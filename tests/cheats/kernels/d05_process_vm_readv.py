# cheat: D5 reads its parent's memory by process_vm_readv
# problem: identity
# expect: ok rejected crashed
# gains: false
# `incorrect` says that the parent's memory could be read.

import ctypes
import os

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
SYS_process_vm_readv = {"x86_64": 310, "aarch64": 270}.get(os.uname().machine, 310)


class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


buffer = ctypes.create_string_buffer(64)
here = Span(ctypes.cast(buffer, ctypes.c_void_p), 64)
there = Span(id(object()), 64)  # a fork's parent has its objects at the same addresses
libc = ctypes.CDLL(None)
leak = libc.syscall(SYS_process_vm_readv, os.getppid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0) == 64


def custom_kernel(data):
    x, out = data
    if leak:
        return out
    kernel.copy(x, out, x.numel())
    return out
