# cheat: C8 honest for the first eight calls of a shape, then returns the last result
# problem: rmsnorm
# expect: incorrect rejected

# include: rows
last = {}


def custom_kernel(data):
    x, weight, out = data
    count, result = last.get(x.shape, (0, None))
    if count < 8:
        kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
        result = out.clone()
    last[x.shape] = count + 1, result
    return result
