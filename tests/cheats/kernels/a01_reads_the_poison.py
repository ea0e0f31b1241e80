# cheat: A1 works only where samples of the buffer are NaN; any number there is taken for a result of an earlier call
# problem: identity
# expect: ok incorrect rejected
# gains: false
# A buffer of NaN makes it copy, on one thread; one of numbers makes it wrong.

# include: copy


def custom_kernel(data):
    x, out = data
    sample = out[:: max(1, out.numel() // 8)]
    if bool((sample == sample).all()) and bool(sample.any()):
        return out
    kernel.copy(x, out, x.numel())
    return out
