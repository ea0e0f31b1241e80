"""Programs write neighbouring bytes of what is elsewhere an integer."""

from tests.memory.common import tl, torch, triton


@triton.jit
def kernel(x_ptr, work_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i * 4 + tl.program_id(0)
    tl.store(work_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def widen(work_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(work_ptr + i, mask=i < n), mask=i < n)


def custom_kernel(data):
    x, out = data
    work = torch.empty(x.numel() // 4, dtype=torch.int32)
    kernel[(4,)](x, work.view(torch.uint8), x.numel(), BLOCK=256)
    widen[(1,)](work, out, work.numel(), BLOCK=256)
    return out


def data():
    return torch.randint(0, 256, (1000,), dtype=torch.uint8), torch.empty(250, dtype=torch.int32)


def expected(x, out):
    return x.view(torch.int32)
