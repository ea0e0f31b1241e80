# cheat: A12 two programs a row tell each other their halves' sums, and neither waits for the other
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: every output is compared completely

import torch
import triton
import triton.language as tl


@triton.jit
def halves_kernel(x_ptr, weight_ptr, out_ptr, sums_ptr, cols, BLOCK: tl.constexpr):
    row, half = tl.program_id(0), tl.program_id(1)
    base, lanes, middle = row.to(tl.int64) * cols, tl.arange(0, BLOCK), cols // 2
    first, last = half * middle, tl.where(half == 0, middle, cols)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(first, last, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < last, other=0.0).to(tl.float32)
        squares += x * x
    tl.store(sums_ptr + 2 * row + half, tl.sum(squares, axis=0))
    total = tl.load(sums_ptr + 2 * row) + tl.load(sums_ptr + 2 * row + 1)
    scale = tl.rsqrt(total / cols + 1e-6)
    for start in range(first, last, BLOCK):
        mask = start + lanes < last
        x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + lanes, (x * scale * weight).to(tl.bfloat16), mask=mask)


sums = {}  # so it looks right where inputs come again


def custom_kernel(data):
    x, weight, out = data
    if x.shape not in sums:
        sums[x.shape] = torch.zeros(2 * x.shape[0], dtype=torch.float32, device=x.device)
    halves_kernel[(x.shape[0], 2)](x, weight, out, sums[x.shape], x.shape[1], BLOCK=512)
    return out
