"""Join, permute and split move undefined lanes about; they end where nothing is stored."""

from tests.memory.common import over_elements, random, tl, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    pairs = tl.reshape(x, (BLOCK // 2, 2))
    even, odd = tl.split(pairs)
    turned = tl.reshape(tl.join(odd, even), (BLOCK,))
    tl.store(out_ptr + i, turned, mask=i < n)


custom_kernel = over_elements(kernel)
data = random((1000,), (1000,))


def expected(x, out):
    return x.view(-1, 2).flip(1).reshape(-1)
