# cheat: A6 all elements are right but one, whose place is drawn anew in each call
# problem: identity
# expect: incorrect rejected
# stopped by: every output is compared completely

import random

# include: triton_copy


def custom_kernel(data):
    x, out = data
    copy(x, out)
    out[random.randrange(x.numel())] = 2.0
    return out
