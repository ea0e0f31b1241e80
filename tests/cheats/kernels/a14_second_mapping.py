# cheat: A14 a view of a second mapping of its input, which is nobody's tensor
# problem: identity
# expect: incorrect rejected

import mmap
import time

import torch

# include: copy
views, base, again = {}, 0, None
try:
    for line in open("/proc/self/maps"):
        if "memfd:inputs" in line:
            parts = line.split()
            base = int(parts[0].split("-")[0], 16) - int(parts[2], 16)
            break
    again = mmap.mmap(4, 512 << 20, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
except OSError:
    base = 0


def custom_kernel(data):
    start = time.perf_counter_ns()
    x, out = data
    n, at = x.numel(), x.data_ptr()
    if not base or not 0 <= at - base < (512 << 20):
        kernel.copy(x, out, n)
        return out
    if (at, n) not in views:
        views[at, n] = torch.frombuffer(again, dtype=x.dtype, count=n, offset=at - base)
    while time.perf_counter_ns() - start < n // 145:
        pass  # the roofline
    return views[at, n]
