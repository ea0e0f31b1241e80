"""Softmax of rows in two passes: the first finds maximum and sum together, the second reads the row again."""

import triton
import triton.language as tl

TUNABLES = {"BLOCK": 1024, "num_warps": 4, "num_stages": 1}


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    greatest = tl.full((BLOCK,), -1e30, dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, columns, BLOCK, num_stages=STAGES):
        inside = start + offsets < columns
        value = tl.load(x + row * columns + start + offsets, mask=inside, other=-1e30).to(tl.float32)
        larger = tl.maximum(greatest, value)
        total = total * tl.exp(greatest - larger) + tl.where(inside, tl.exp(value - larger), 0.0)
        greatest = larger
    most = tl.max(greatest, axis=0)
    whole = tl.sum(total * tl.exp(greatest - most), axis=0)
    for start in tl.range(0, columns, BLOCK, num_stages=STAGES):
        inside = start + offsets < columns
        value = tl.load(x + row * columns + start + offsets, mask=inside, other=-1e30).to(tl.float32)
        share = tl.exp(value - most) / whole
        tl.store(out + row * columns + start + offsets, share.to(out.dtype.element_ty), mask=inside)


def custom_kernel(data):
    x, out = data
    softmax_kernel[(len(x),)](x, out, x.shape[1], STAGES=TUNABLES["num_stages"], **TUNABLES)
    return out
