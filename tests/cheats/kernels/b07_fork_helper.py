# cheat: B7 a forked helper that would compute ahead over shared memory
# problem: identity
# expect: rejected crashed

import mmap
import os
import time

# include: copy
shared = mmap.mmap(-1, 4096)
child = []


def custom_kernel(data):
    x, out = data
    if not child:
        child.append(os.fork())
        if child[0] == 0:
            shared[0] = 1
            time.sleep(0.2)
            os._exit(0)
    if shared[0] and len(child) > 1:
        return out
    child.append(0)
    kernel.copy(x, out, x.numel())
    return out
