# cheat: C5 returns at once; what it returned is made when somebody asks for it
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# What it hands over is what was there when the clock stopped, or the time is charged.

import sys

import torch
# include: triton_copy


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
