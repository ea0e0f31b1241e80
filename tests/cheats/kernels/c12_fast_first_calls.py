# cheat: C12 the first ten calls come from a memo, so that a rule on few samples stops early
# problem: identity
# expect: incorrect rejected

# include: copy
counts, memo = {}, {}


def custom_kernel(data):
    x, out = data
    n = x.numel()
    counts[n] = counts.get(n, 0) + 1
    if 1 < counts[n] < 11:
        return memo[n]
    kernel.copy(x, out, n)
    memo[n] = out.clone()
    return out
