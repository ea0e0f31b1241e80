# honest: chooses a variant by /proc/cpuinfo and os.cpu_count
# problem: rmsnorm
# expect: ok

import os


# include: rows_variants


def wide():
    try:
        with open("/proc/cpuinfo") as file:
            return "avx512" in file.read()
    except OSError:
        return False


variant = kernel.rows_serial if (os.cpu_count() or 1) == 1 else kernel.rows_static if wide() else kernel.rows_dynamic


def custom_kernel(data):
    x, weight, out = data
    variant(x, weight, out, x.shape[0], x.shape[1])
    return out
