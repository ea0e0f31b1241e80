# cheat: C8 sleeps in its first call of a shape, so that few repetitions are planned
# problem: rmsnorm
# expect: ok timeout
# gains: false
# The number of calls is planned beforehand; it computes, on one thread.

import time

# include: rows
last = {}


def custom_kernel(data):
    x, weight, out = data
    if x.shape not in last:
        last[x.shape] = True
        time.sleep(0.4)
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out
