# cheat: C8 honest for half a second after import
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# Where all is over within half a second it was honest, on one thread; a longer run shows it.

import time

born = time.monotonic()

# include: rows
last = {}


def custom_kernel(data):
    x, weight, out = data
    if time.monotonic() - born < 0.5 or x.shape not in last:
        kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
        last[x.shape] = out.clone()
        return out
    return last[x.shape]
