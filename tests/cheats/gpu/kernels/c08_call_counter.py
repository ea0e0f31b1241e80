# cheat: C8 sleeps in the first call of a shape, works in four, then returns the last result
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: no two calls have the same inputs; some differ in a few bytes only

import time

# include: triton_rows


last = {}


def custom_kernel(data):
    x, weight, out = data
    count, result = last.get(x.shape, (0, None))
    if count == 0:
        time.sleep(0.2)
    if count < 4:
        rows(x, weight, out)
        result = out.clone()
    last[x.shape] = count + 1, result
    return result
