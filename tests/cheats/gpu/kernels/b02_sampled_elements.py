# cheat: B2 memo keyed by sixteen sampled elements
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Where no input ever comes again its key finds nothing: it computes, and pays for reading the key too.

# include: triton_copy


memo = {}


def custom_kernel(data):
    x, out = data
    key = (x.numel(), *x[:: max(1, x.numel() // 16)].tolist())
    if key not in memo:
        copy(x, out)
        memo[key] = out.clone()
    return memo[key]
