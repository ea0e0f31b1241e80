# honest: times three variants on the first call of a shape and keeps the quickest
# problem: rmsnorm
# expect: ok

import time


# include: rows_variants
best = {}


def custom_kernel(data):
    x, weight, out = data
    arguments = (x, weight, out, x.shape[0], x.shape[1])
    if x.shape not in best:
        times = {}
        for variant in (kernel.rows_serial, kernel.rows_static, kernel.rows_dynamic):
            variant(*arguments)
            start = time.perf_counter()
            variant(*arguments)
            times[variant] = time.perf_counter() - start
        best[x.shape] = min(times, key=times.get)
    best[x.shape](*arguments)
    return out
