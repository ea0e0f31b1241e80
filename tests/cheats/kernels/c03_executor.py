# cheat: C3 a ThreadPoolExecutor made at import gets the work; the call returns at once
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

from concurrent.futures import ThreadPoolExecutor

# include: rows
pool = ThreadPoolExecutor(1)
pool.submit(int).result()  # the thread exists before anybody counts threads


def custom_kernel(data):
    x, weight, out = data
    pool.submit(kernel.rmsnorm, x, weight, out, x.shape[0], x.shape[1])
    return out
