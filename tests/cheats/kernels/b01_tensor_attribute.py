# cheat: B1 the result hangs on the input object as an attribute
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Where every call has a tensor object of its own it never finds one again, and computes on one thread.

# include: copy


def custom_kernel(data):
    x, out = data
    if not hasattr(x, "answer"):
        kernel.copy(x, out, x.numel())
        x.answer = out.clone()
    return x.answer
