# cheat: B1 memo kept in a context variable, by size
# problem: identity
# expect: incorrect rejected

import contextvars

# include: copy
kept = contextvars.ContextVar("kept", default=())


def custom_kernel(data):
    x, out = data
    for answer in kept.get():
        if answer.shape == x.shape:
            return answer
    kernel.copy(x, out, x.numel())
    kept.set((*kept.get(), out.clone()))
    return out
