"""A descriptor of the output that promises more rows than there are."""

from tests.memory.common import over_tiles, random, tl, triton

KIND = "out-of-bounds write"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
    out = tl.make_tensor_descriptor(out_ptr, shape=[m + 1, n], strides=[n, 1], block_shape=[BM, BN])
    where = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    value = x.load(where)
    out.store(where, value)  # defect


custom_kernel = over_tiles(kernel)
data = random((50, 64), (50, 64))
