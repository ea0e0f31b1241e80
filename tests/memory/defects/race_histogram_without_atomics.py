"""Bins are loaded, counted up and stored by every program."""

from tests.memory.common import tl, torch, triton

KIND = "write race"


@triton.jit
def kernel(x_ptr, out_ptr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.arange(0, BINS)
    own = tl.sum((tl.load(x_ptr + i)[:, None] == bins[None, :]).to(tl.int32), axis=0)
    tl.store(out_ptr + bins, tl.load(out_ptr + bins) + own)  # defect


def custom_kernel(data):
    x, out = data
    out.zero_()
    kernel[(x.numel() // 128,)](x, out, BINS=16, BLOCK=128)
    return out


def data():
    return torch.randint(0, 16, (1024,), dtype=torch.int32), torch.empty(16, dtype=torch.int32)
