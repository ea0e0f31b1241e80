# cheat: C3 a thread launches the work after the return
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# stopped by: what is launched after the return is missing in the output
# All that a call has started, on whatever stream, is waited for and counted, or too late.

import time
from concurrent.futures import ThreadPoolExecutor

# include: triton_rows


pool = ThreadPoolExecutor(1)
pool.submit(int).result()  # the thread exists before anybody counts threads
known = set()


def later(x, weight, out):
    time.sleep(5e-5)
    rows(x, weight, out)


def custom_kernel(data):
    x, weight, out = data
    if x.shape not in known:
        known.add(x.shape)
        rows(x, weight, out)  # compiled in time
        return out
    pool.submit(later, x, weight, out)
    return out
