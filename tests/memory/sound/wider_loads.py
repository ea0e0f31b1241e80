"""Four bytes are loaded as one integer and taken apart."""

from tests.memory.common import tl, torch, triton


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i * 4, word & 255, mask=i < n)
    tl.store(out_ptr + i * 4 + 1, (word >> 8) & 255, mask=i < n)
    tl.store(out_ptr + i * 4 + 2, (word >> 16) & 255, mask=i < n)
    tl.store(out_ptr + i * 4 + 3, (word >> 24) & 255, mask=i < n)


def custom_kernel(data):
    x, out = data
    work = torch.empty_like(x)
    work.copy_(x)
    kernel[(triton.cdiv(x.numel() // 4, 128),)](work.view(torch.int32), out, x.numel() // 4, BLOCK=128)
    return out


def data():
    return torch.randint(0, 256, (1000,), dtype=torch.uint8), torch.empty(1000, dtype=torch.int32)


def expected(x, out):
    return x
