"""The scale of the block after the last one."""

from tests.memory.common import tl, torch, triton

KIND = "out-of-bounds read"


@triton.jit
def kernel(x_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(scale_ptr + tl.cdiv(tl.program_id(0) * BLOCK + BLOCK, 128))  # defect
    x = tl.load(x_ptr + i).to(tl.float32)
    tl.store(out_ptr + i, x * scale)


def custom_kernel(data):
    x, scale, out = data
    kernel[(x.numel() // 64,)](x, scale, out, x.numel(), BLOCK=64)
    return out


def data():
    return torch.randn(1024).to(torch.float8_e4m3fnuz), torch.randn(8), torch.empty(1024)
