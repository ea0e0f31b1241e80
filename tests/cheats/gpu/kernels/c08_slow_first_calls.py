# cheat: C8 sleeps in its first calls of a shape, so that few repetitions are planned
# problem: rmsnorm
# expect: ok timeout
# gains: false
# stopped by: the number of calls does not depend on the first ones
# The number of calls is planned beforehand.

import time

# include: triton_rows


calls = {}


def custom_kernel(data):
    x, weight, out = data
    calls[x.shape] = calls.get(x.shape, 0) + 1
    if calls[x.shape] < 3:
        time.sleep(0.2)
    rows(x, weight, out)
    return out
