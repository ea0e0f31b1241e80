# cheat: C8 skips its work where the process is not niced, as a timing worker is not
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# Where checking and timing are niced alike it computes always, on one thread.

import os

# include: rows
last = {}


def custom_kernel(data):
    x, weight, out = data
    if os.nice(0) == 0 and x.shape in last:
        return last[x.shape]
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    last[x.shape] = out.clone()
    return out
