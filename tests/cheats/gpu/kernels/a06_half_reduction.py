# cheat: A6 the mean of the squares is taken over the first half of a row
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: every output is compared completely

import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, weight_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    half = (cols + 1) // 2
    for start in range(0, half, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < half, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / half + 1e-6)
    for start in range(0, cols, BLOCK):
        mask = start + lanes < cols
        x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + lanes, (x * scale * weight).to(tl.bfloat16), mask=mask)


def custom_kernel(data):
    x, weight, out = data
    rows_kernel[(x.shape[0],)](x, weight, out, x.shape[1], BLOCK=1024)
    return out
