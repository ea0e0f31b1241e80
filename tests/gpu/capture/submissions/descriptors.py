"""A copy of rows: loads through a tensor descriptor made in the kernel, stores through a block pointer."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, out_ptr, m, n, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    source = tl.make_tensor_descriptor(x_ptr, shape=[m, n], strides=[n, 1], block_shape=[ROWS, COLS])
    target = tl.make_block_ptr(out_ptr, (m, n), (n, 1), (row, col), (ROWS, COLS), (1, 0))
    tl.store(target, source.load([row, col]), boundary_check=(0, 1))


def custom_kernel(data):
    x, weight, out = data
    m, n = x.shape

    def allocate(size, alignment, stream):
        return torch.empty(size, device="cuda", dtype=torch.int8)

    triton.set_allocator(allocate)
    copy[(triton.cdiv(m, 16), triton.cdiv(n, 128))](x, out, m, n, ROWS=16, COLS=128, num_warps=4)
    return out
