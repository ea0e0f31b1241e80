# honest: Triton times three configurations in the first call of a size
# problem: rmsnorm
# expect: ok

import triton
import triton.language as tl


@triton.autotune(
    [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((1024, 4), (2048, 8), (4096, 8))],
    key=["cols"],
)
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


def custom_kernel(data):
    x, weight, out = data
    rows_kernel[(x.shape[0],)](x, weight, out, x.shape[1])
    return out
