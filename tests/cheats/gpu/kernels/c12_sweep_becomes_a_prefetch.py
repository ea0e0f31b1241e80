# cheat: C12 where it is to sweep the caches, and in calls that nobody times, it reads its next inputs
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# The flush is not the kernel's to make: no input is in the cache when the clock runs.

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


worker = sys.modules.get("kernel_scientist.harness.worker")
Worker = getattr(worker, "Worker", None)
workers = []

if hasattr(Worker, "_sweep"):
    prepare = Worker._prepare

    def warm(self):
        for x, weight, _ in (data for slot, data in self.data.items() if slot < 1 << 16):
            x.view(torch.int16).max()
            weight.max()
        torch.cuda.synchronize()

    def prepared(self, items, buffers):
        prepare(self, items, buffers)
        workers[:] = [self] if items[-1]["slot"] >= 1 << 16 else []

    Worker._prepare, Worker._sweep = prepared, warm


def custom_kernel(data):
    x, weight, out = data
    rows(x, weight, out)
    if workers:  # a rehearsal: what counts comes next
        warm(workers.pop())
    return out
