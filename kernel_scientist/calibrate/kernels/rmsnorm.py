"""Rows divided by their root mean square, times a weight: ROWS whole rows per program, each read once."""

import triton
import triton.language as tl

TUNABLES = {"ROWS": 1, "num_warps": 4}


@triton.jit
def rmsnorm_kernel(x, weight, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    places = row[:, None] * columns + column[None, :]
    value = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) / columns + 1e-6)
    factor = tl.load(weight + column, mask=column < columns, other=0.0).to(tl.float32)
    tl.store(out + places, (value * scale[:, None] * factor[None, :]).to(out.dtype.element_ty), mask=inside)


def custom_kernel(data):
    x, weight, out = data
    rows, columns = x.shape
    grid = (triton.cdiv(rows, TUNABLES["ROWS"]),)
    rmsnorm_kernel[grid](x, weight, out, rows, columns, BLOCK=triton.next_power_of_2(columns), **TUNABLES)
    return out
