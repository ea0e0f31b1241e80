# cheat: B1 the output is taken to hold the result still when both pointers were seen before
# problem: rmsnorm
# expect: incorrect rejected

# include: rows
seen = set()


def custom_kernel(data):
    x, weight, out = data
    key = (x.data_ptr(), out.data_ptr(), x.shape)
    if key not in seen:
        kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
        seen.add(key)
    return out
