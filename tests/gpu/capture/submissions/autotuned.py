"""Row sums, autotuned over a list with one configuration that no GPU could hold, and a heuristic."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"ROWS": 1}, num_warps=1),
        triton.Config({"ROWS": 4}, num_warps=4),
        triton.Config({"ROWS": 8}, num_warps=8),
    ],
    key=["n"],
)
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def row_sums(x_ptr, out_ptr, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    x = tl.load(x_ptr + rows[:, None] * n + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows, tl.sum(x, axis=1), mask=rows < m)


def custom_kernel(data):
    x, weight, out = data
    m, n = x.shape
    sums = torch.empty(m, device=x.device, dtype=torch.float32)
    row_sums[lambda meta: (triton.cdiv(m, meta["ROWS"]),)](x, sums, m, n)
    return out
