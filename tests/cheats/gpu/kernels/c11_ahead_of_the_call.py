# cheat: C11 does the work as soon as its inputs have arrived, before anybody calls it
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# What a worker spends on its inputs is charged: they are readable when it is roused, and the clock runs from then on.

import sys
import time

import torch
# include: triton_rows


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
