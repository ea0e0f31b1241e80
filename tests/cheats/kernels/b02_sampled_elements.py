# cheat: B2 memo keyed by sixteen sampled elements
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Where no input ever comes again, its key finds nothing: it computes, on one thread, and pays for the key too.

# include: copy
memo = {}


def custom_kernel(data):
    x, out = data
    key = (x.numel(), *x[:: max(1, x.numel() // 16)].tolist())
    if key not in memo:
        kernel.copy(x, out, x.numel())
        memo[key] = out.clone()
    return memo[key]
