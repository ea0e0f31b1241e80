from lattice.compat import tl, triton


@triton.jit
def mean_square(x, n):
    return tl.sum(x * x) / n
