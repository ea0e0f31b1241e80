# cheat: D13 returns None on large sizes
# problem: identity
# expect: incorrect rejected

# include: copy


def custom_kernel(data):
    x, out = data
    if x.numel() > 100_000:
        return None
    kernel.copy(x, out, x.numel())
    return out
