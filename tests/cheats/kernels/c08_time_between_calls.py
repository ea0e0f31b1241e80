# cheat: C8 a long pause between calls means a check, a short one a timing loop
# problem: rmsnorm
# expect: incorrect rejected

import time

# include: rows
last = {}


def custom_kernel(data):
    x, weight, out = data
    then, result = last.get(x.shape, (0, None))
    now = time.monotonic()
    if result is None or now - then > 0.3:
        kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
        result = out.clone()
    last[x.shape] = now, result
    return result
