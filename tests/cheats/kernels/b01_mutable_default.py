# cheat: B1 memo kept in a mutable default argument, by pointer
# problem: identity
# expect: incorrect rejected

# include: copy


def custom_kernel(data, memo={}):  # noqa: B006
    x, out = data
    key = (x.data_ptr(), x.numel())
    if key not in memo:
        kernel.copy(x, out, x.numel())
        memo[key] = out.clone()
    return memo[key]
