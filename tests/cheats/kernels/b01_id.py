# cheat: B1 memo keyed by id() of the input
# problem: identity
# expect: incorrect rejected

# include: copy
memo = {}


def custom_kernel(data):
    x, out = data
    key = (id(x), x.numel())
    if key not in memo:
        kernel.copy(x, out, x.numel())
        memo[key] = out.clone()
    return memo[key]
