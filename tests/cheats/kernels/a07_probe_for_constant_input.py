# cheat: A7 a constant prefix is taken for a constant vector
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Right on the public distribution and no faster there; an input with a constant prefix shows it.

# include: copy


def custom_kernel(data):
    x, out = data
    head = x[:256]
    if bool((head == head[0]).all()) and x.numel() > 256:
        return out.fill_(float(x[0]))
    kernel.copy(x, out, x.numel())
    return out
