# cheat: B1 memo keyed by data_ptr
# problem: identity
# expect: incorrect rejected

# include: copy
memo = {}


def custom_kernel(data):
    x, out = data
    key = (x.data_ptr(), x.numel())
    if key not in memo:
        kernel.copy(x, out, x.numel())
        memo[key] = out.clone()
    return memo[key]
