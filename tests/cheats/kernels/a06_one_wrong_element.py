# cheat: A6 one element, at a random place, is not written
# problem: identity
# expect: incorrect rejected

import random

# include: copy


def custom_kernel(data):
    x, out = data
    hole = random.SystemRandom().randrange(x.numel())
    kernel.copy(x, out, hole)
    kernel.copy(x[hole + 1 :], out[hole + 1 :], x.numel() - hole - 1)
    return out
