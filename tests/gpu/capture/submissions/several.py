"""Two kernels per call with a helper function: scales per row first, then the rows; asks the device what it is."""

import torch
import triton
import triton.language as tl


@triton.jit
def squared(x):
    return x * x


@triton.jit
def scales(x_ptr, scale_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += squared(tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0).to(tl.float32))
    tl.store(scale_ptr + row, 1.0 / tl.sqrt(tl.sum(total, axis=0) / n + eps))


@triton.jit
def rows(x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, programs, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), m, programs):
        scale = tl.load(scale_ptr + row)
        for start in range(0, n, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0).to(tl.float32)
            w = tl.load(weight_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
            tl.store(out_ptr + row * n + cols, (x * scale * w).to(tl.bfloat16), mask=cols < n)


def custom_kernel(data):
    x, weight, out = data
    m, n = x.shape
    assert x.is_cuda and x.device.type == "cuda"
    units = torch.cuda.get_device_properties(x.device).multi_processor_count
    scale = torch.empty(m, device="cuda", dtype=torch.float32)
    scales[(m,)](x, scale, n, 1e-6, BLOCK=1024, num_warps=4)
    rows[(min(m, units),)](x, weight, scale, out, m, n, units, BLOCK=1024, num_warps=8)
    torch.cuda.synchronize()
    return out
