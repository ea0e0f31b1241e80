# cheat: D13 sleeps on large sizes, in the hope that a timed-out case is left out
# problem: identity
# expect: timeout

import time

# include: copy


def custom_kernel(data):
    x, out = data
    if x.numel() > 100_000:
        time.sleep(30)
    kernel.copy(x, out, x.numel())
    return out
