# honest: a grid of as many programs as the device has units, each of which takes every so many-th row
# problem: rmsnorm
# expect: ok

import torch
import triton
import triton.language as tl


@triton.jit
def persistent_kernel(x_ptr, weight_ptr, out_ptr, rows, cols, programs, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0).to(tl.int64), rows, programs):
        base = row * cols
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
    programs = 4 * torch.cuda.get_device_properties(x.device).multi_processor_count
    persistent_kernel[(programs,)](x, weight, out, x.shape[0], x.shape[1], programs, BLOCK=1024)
    return out
