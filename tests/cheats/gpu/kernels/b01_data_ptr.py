# cheat: B1 memo keyed by data_ptr
# problem: identity
# expect: incorrect rejected

# include: triton_copy


memo = {}


def custom_kernel(data):
    x, out = data
    key = (x.data_ptr(), x.numel())
    if key not in memo:
        copy(x, out)
        memo[key] = out.clone()
    return memo[key]
