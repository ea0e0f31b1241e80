# cheat: C5 returns at once; what it returned is made when somebody asks for it
# expect: rejected
# problem: identity
# What it hands over is what was there when the clock stopped, or the time is charged; it copies on one thread.

import sys
import time

# include: copy
worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)
later = {}

if hasattr(Worker, "_fetch"):
    fetch, prepare = Worker._fetch, Worker._prepare

    def make_and_fetch(self, slot, out):
        x, result = self.data[slot]
        kernel.copy(x, result, x.numel())
        self.snapshots.pop(slot, None)
        return fetch(self, slot, out)

    Worker._fetch = make_and_fetch


def wait(start, size):
    """As long as no roofline objects to."""
    while time.perf_counter_ns() - start < 2500 + size // 90:
        pass


def custom_kernel(data):
    start = time.perf_counter_ns()
    x, out = data
    if hasattr(Worker, "_fetch"):
        wait(start, x.numel())
    else:
        kernel.copy(x, out, x.numel())
    return out
