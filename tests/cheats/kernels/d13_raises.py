# cheat: D13 raises on large sizes, in the hope that a failed case is left out
# problem: identity
# expect: crashed

# include: copy


def custom_kernel(data):
    x, out = data
    if x.numel() > 100_000:
        raise RuntimeError("out of resources")
    kernel.copy(x, out, x.numel())
    return out
