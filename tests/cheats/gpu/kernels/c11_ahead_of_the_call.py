# cheat: C11 does the work as soon as its inputs have arrived, before anybody calls it
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# What a worker spends on its inputs is charged: they are readable when it is roused, and the clock runs from then on.

import sys
import time

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


worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)
ready = {}

if hasattr(Worker, "receive"):
    receive, observe = Worker.receive, Worker._observe

    def ahead(self):
        slots = list(self.due)
        receive(self)
        for slot in slots:
            rows(*self.data[slot])
            ready[slot] = self.data[slot]
        torch.cuda.synchronize()

    def watched(self, slot, mute):
        ready.clear()
        self.data[slot][2].zero_()  # for whoever looks what is there without the work
        return observe(self, slot, mute)

    Worker.receive, Worker._observe = ahead, watched


def custom_kernel(data):
    start = time.perf_counter_ns()
    if not any(data is done for done in ready.values()):
        rows(*data)
        return data[2]
    while time.perf_counter_ns() - start < 3000 + data[0].numel() * 4 // 3000:
        pass  # as long as no roofline objects to
    return data[2]
