# honest: copies into the given buffer, works there in place, returns it
# problem: rmsnorm
# expect: ok

import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, weight_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < cols, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + 1e-6)
    for start in range(0, cols, BLOCK):
        mask = start + lanes < cols
        x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + lanes, (x * scale * weight).to(tl.bfloat16), mask=mask)


def rows(x, weight, out):
    rows_kernel[(x.shape[0],)](x, weight, out, x.shape[1], BLOCK=1024)


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def custom_kernel(data):
    x, weight, out = data
    copy_kernel[(triton.cdiv(x.numel(), 2048),)](x, out, x.numel(), BLOCK=2048)
    rows(out, weight, out)
    return out
