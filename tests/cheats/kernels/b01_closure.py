# cheat: B1 memo kept in a closure's variable, by shape of the last call
# problem: rmsnorm
# expect: incorrect rejected

# include: rows


def make():
    last_shape, last = None, None

    def run(data):
        nonlocal last_shape, last
        x, weight, out = data
        if x.shape != last_shape:
            kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
            last_shape, last = x.shape, out.clone()
        return last

    return run


custom_kernel = make()
