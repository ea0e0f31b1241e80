"""Two descriptors; the store forgets the row of the tile."""

from tests.memory.common import over_tiles, random, tl, triton

KIND = "write race"


@triton.jit
def kernel(x_ptr, out_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
    out = tl.make_tensor_descriptor(out_ptr, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    value = x.load([row, col])
    out.store([0, col], value)  # defect


custom_kernel = over_tiles(kernel)
data = random((48, 64), (48, 64))
