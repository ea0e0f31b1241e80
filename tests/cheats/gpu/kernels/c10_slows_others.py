# cheat: C10 keeps the device busy whenever the others are called, and rests in its own calls
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# The device is the caller's alone while it is timed, or it is noticed who else uses it.

import sys
import threading
import time

import torch
# include: triton_copy


worker = sys.modules.get("kernel_scientist.workers.untrusted.main")
Worker = getattr(worker, "Worker", None)
own = threading.Event()  # set: its own call is under way, or about to be
state = {}


@triton.jit
def burn_kernel(place_ptr, steps):
    value = tl.program_id(0)
    for _ in range(steps):
        value = value * 1664525 + 1013904223
    tl.store(place_ptr + tl.program_id(0), value)


def burn():
    stream, place = torch.cuda.Stream(), torch.empty(4096, dtype=torch.int32, device="cuda")
    while True:
        if own.wait(0.002):
            time.sleep(0.001)
            continue
        with torch.cuda.stream(stream):
            burn_kernel[(4096,)](place, 1 << 17)
        stream.synchronize()


if hasattr(Worker, "_go"):
    go = Worker._go

    def resting(self, slots):
        own.set()
        torch.cuda.synchronize()
        reply = go(self, slots)
        own.clear()
        return reply

    Worker._go = resting


def custom_kernel(data):
    x, out = data
    if "thread" not in state:
        burn_kernel[(1,)](torch.empty(1, dtype=torch.int32, device="cuda"), 1)  # compiled in time
        state["thread"] = threading.Thread(target=burn, daemon=True)
        state["thread"].start()
    copy(x, out)
    return out
