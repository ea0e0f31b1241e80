# type: ignore
# ruff: noqa: ANN001, ANN201, D103
"""Sums of rows in fp32: a program per row goes through it BLOCK columns at a time."""

import triton
import triton.language as tl

TUNABLES = {"BLOCK": 1024, "num_warps": 4, "num_stages": 1}


@triton.jit
def reduction_kernel(x, out, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, columns, BLOCK, num_stages=STAGES):
        inside = start + offsets < columns
        total += tl.load(x + row * columns + start + offsets, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row, tl.sum(total, axis=0))


def custom_kernel(data):
    x, out = data
    rows, columns = x.shape
    stages = TUNABLES["num_stages"]
    options = {"num_warps": TUNABLES["num_warps"], "num_stages": stages}
    reduction_kernel[(rows,)](x, out, columns, BLOCK=TUNABLES["BLOCK"], STAGES=stages, **options)
    return out
