# variant: c03_executor | C3 a ThreadPoolExecutor made at import gets the work; the call returns at once | pool.submit(kernel.rmsnorm, x, weight, out, *x.shape)
# variant: c03_python_thread | C3 a Python thread is started and not joined | threading.Thread(target=kernel.rmsnorm, args=(x, weight, out, *x.shape), daemon=True).start()
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

import threading
from concurrent.futures import ThreadPoolExecutor

# include: rows
pool = ThreadPoolExecutor(1)
pool.submit(int).result()  # the thread exists before anybody counts threads


def custom_kernel(data):
    x, weight, out = data
    $VARIANT
    return out
