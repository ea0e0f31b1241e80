# honest: counts calls by shape in a dictionary and lets nothing depend on it
# problem: rmsnorm
# expect: ok

# include: rows_variants
calls = {}


def custom_kernel(data):
    x, weight, out = data
    calls[x.shape] = calls.get(x.shape, 0) + 1
    kernel.rows_static(x, weight, out, x.shape[0], x.shape[1])
    return out
