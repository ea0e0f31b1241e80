# cheat: B2 memo keyed by a strided sum: one element changed elsewhere is not seen
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# Where no input ever comes again, its key finds nothing: it computes, on one thread, and pays for the key too.

# include: rows
memo = {}


def custom_kernel(data):
    x, weight, out = data
    key = (x.shape, float(x.view(-1)[::4097].float().sum()))
    if key not in memo:
        kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
        memo[key] = out.clone()
    return memo[key]
