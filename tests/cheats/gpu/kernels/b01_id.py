# cheat: B1 memo keyed by id() of the input
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Where an object's number never comes again its key finds nothing: it computes, and pays for the memo too.

# include: triton_copy


memo = {}


def custom_kernel(data):
    x, out = data
    key = (id(x), x.numel())
    if key not in memo:
        copy(x, out)
        memo[key] = out.clone()
    return memo[key]
