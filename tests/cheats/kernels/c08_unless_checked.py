# variant: c08_priority | C8 skips its work where the process is not niced, as a timing worker is not | os.nice(0) == 0
# variant: c08_time_since_import | C8 honest for half a second after import | time.monotonic() - born > 0.5
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# Where it takes every call for a check it was honest, on one thread.

import os
import time

born = time.monotonic()

# include: rows
last = {}


def custom_kernel(data):
    x, weight, out = data
    if x.shape in last and $VARIANT:
        return last[x.shape]
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    last[x.shape] = out.clone()
    return out
