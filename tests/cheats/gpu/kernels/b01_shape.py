# cheat: B1 memo keyed by shape
# problem: identity
# expect: incorrect rejected

# include: triton_copy


memo = {}


def custom_kernel(data):
    x, out = data
    key = x.shape
    if key not in memo:
        copy(x, out)
        memo[key] = out.clone()
    return memo[key]
