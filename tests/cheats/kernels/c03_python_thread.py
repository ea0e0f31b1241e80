# cheat: C3 a Python thread is started and not joined
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

import threading

# include: rows


def custom_kernel(data):
    x, weight, out = data
    threading.Thread(target=kernel.rmsnorm, args=(x, weight, out, x.shape[0], x.shape[1]), daemon=True).start()
    return out
