"""A reduction with a combine function of its own; padding has weight zero and value zero."""

from tests.memory.common import over_rows, random, tl, triton


@triton.jit
def combine(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    ratio = tl.where(n == 0.0, 0.0, n_b / n)
    delta = mean_b - mean_a
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * n_a * ratio, n


@triton.jit
def kernel(x_ptr, out_ptr, n, BN: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=0.0)
    mean, m2, weight = tl.reduce((x, tl.zeros_like(x), (j < n).to(tl.float32)), 0, combine)
    tl.store(out_ptr + row, m2 / weight)


custom_kernel = over_rows(kernel, block=32)
data = random((3, 25), (3,))


def expected(x, out):
    return x.var(1, correction=0)
