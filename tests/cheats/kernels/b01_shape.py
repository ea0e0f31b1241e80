# cheat: B1 memo keyed by shape and dtype
# problem: rmsnorm
# expect: incorrect rejected

# include: rows
memo = {}


def custom_kernel(data):
    x, weight, out = data
    key = (x.shape, x.dtype)
    if key not in memo:
        kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
        memo[key] = out.clone()
    return out.copy_(memo[key])
