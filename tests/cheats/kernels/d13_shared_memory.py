# cheat: D13 takes memory that counts as nobody's: shared pages, beyond its limit
# problem: identity
# expect: ok rejected crashed timeout
# Shared pages count too: as address space, with a gigabyte to spare for what threads and allocators reserve.

import mmap

# include: copy_on_all_threads

held = []


def custom_kernel(data):
    x, out = data
    if not held:  # half as much again as is allowed where this is tried: 1 GiB
        held.append(mmap.mmap(-1, 3 << 29))
        for i in range(0, 3 << 29, 4096):
            held[0][i] = 1
        held.append(True)
    kernel.copy(x, out, x.numel())
    return out
