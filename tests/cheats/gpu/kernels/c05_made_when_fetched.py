# cheat: C5 returns at once; what it returned is made when somebody asks for it
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# What it hands over is what was there when the clock stopped, or the time is charged.

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)

if hasattr(Worker, "_fetch"):
    fetch = Worker._fetch

    def make_and_fetch(self, slot, out):
        copy(*self.data[slot])
        torch.cuda.synchronize()
        self.snapshots.pop(slot, None)
        return fetch(self, slot, out)

    Worker._fetch = make_and_fetch


def custom_kernel(data):
    x, out = data
    if not hasattr(Worker, "_fetch"):
        copy(x, out)
    return out
