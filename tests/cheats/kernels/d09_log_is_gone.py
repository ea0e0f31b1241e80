# cheat: D9 renames its own log, so that who looks at it fails
# problem: identity
# expect: ok rejected crashed incorrect
# gains: false
# The judge must only not fall over; it copies on one thread.

import os

# include: copy


def custom_kernel(data):
    x, out = data
    for name in os.listdir("."):
        if name.endswith(".log"):
            os.replace(name, name + ".old")
    kernel.copy(x, out, x.numel())
    return out
