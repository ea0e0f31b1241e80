# cheat: A12 the rows are scaled on one stream while another still computes the scales
# problem: rmsnorm
# expect: incorrect rejected

import torch
import triton
import triton.language as tl


@triton.jit
def scales_kernel(x_ptr, scales_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < cols, other=0.0).to(tl.float32)
        squares += x * x
    tl.store(scales_ptr + tl.program_id(0), tl.rsqrt(tl.sum(squares, axis=0) / cols + 1e-6))


@triton.jit
def apply_kernel(x_ptr, weight_ptr, out_ptr, scales_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    scale = tl.load(scales_ptr + tl.program_id(0))
    for start in range(0, cols, BLOCK):
        mask = start + lanes < cols
        x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + lanes, (x * scale * weight).to(tl.bfloat16), mask=mask)


kept, streams = {}, []


def custom_kernel(data):
    x, weight, out = data
    if not streams:
        streams.append(torch.cuda.Stream())
    if x.shape not in kept:
        kept[x.shape] = torch.ones(x.shape[0], dtype=torch.float32, device=x.device)
    apply_kernel[(x.shape[0],)](x, weight, out, kept[x.shape], x.shape[1], BLOCK=1024)
    with torch.cuda.stream(streams[0]):
        scales_kernel[(x.shape[0],)](x, kept[x.shape], x.shape[1], BLOCK=1024)
    return out
