# cheat: C8 skips its work where the stack shows a timing loop
# expect: rejected
# problem: rmsnorm
# Checked and timed calls have the same stack: it computes, on one thread.

import sys

# include: rows
last = {}


def custom_kernel(data):
    x, weight, out = data
    names, frame = [], sys._getframe(1)
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    if any(w in n for n in names for w in ("bench", "timed", "time_", "measure", "perf")) and x.shape in last:
        return last[x.shape]
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    last[x.shape] = out.clone()
    return out
