# cheat: C12 when it has swept the caches it reads its inputs, before the call
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# The clock runs from the moment that the worker is roused: what it does there besides is charged.

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, weight_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < cols, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + 1e-6)
    for start in range(0, cols, BLOCK):
        mask = start + lanes < cols
        x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + lanes, (x * scale * weight).to(tl.bfloat16), mask=mask)


def rows(x, weight, out):
    rows_kernel[(x.shape[0],)](x, weight, out, x.shape[1], BLOCK=1024)


buffers = sys.modules.get("kernel_scientist.workers.untrusted.buffers")
GpuInbox = getattr(buffers, "GpuInbox", None)

if hasattr(GpuInbox, "sweep"):

    sweep = GpuInbox.sweep

    def warm(self, key):
        told = sweep(self, key)
        for block in (block for blocks in self._blocks.values() for block in blocks):
            block.max()
        torch.cuda.synchronize()
        return told

    GpuInbox.sweep = warm


def custom_kernel(data):
    x, weight, out = data
    rows(x, weight, out)
    return out
