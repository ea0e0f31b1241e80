"""Causal attention: blocks below the diagonal without causal mask, exponentials as powers of two, declared tunables.

The tiles that see most positions start first, so that the last round is short.
"""

import torch
import triton
import triton.language as tl

TUNABLES = {
    "BLOCK_M": 128,
    "BLOCK_N": 64,
    "num_warps": 4,
    "num_stages": 1,
    "waves_per_eu": 0,
    "matrix_instr_nonkdim": 0,
}
CHOICES = {
    "BLOCK_M": [64, 128],  # queries of a program; a multiple of BLOCK_N
    "BLOCK_N": [32, 64],  # positions of a step
    "num_warps": [4, 8],
    "num_stages": [1, 2],
    "waves_per_eu": [0, 2, 3],
    "matrix_instr_nonkdim": [0, 16],
}
AMD_ONLY = ("waves_per_eu", "matrix_instr_nonkdim")  # other backends refuse them
DIM = 128
GROUP = 4
LOG2_E = 1.4426950408889634

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    length,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DIM: tl.constexpr,
    GROUP: tl.constexpr,
):
    tl.static_assert(BLOCK_M % BLOCK_N == 0)
    head = tl.program_id(0)
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, DIM)
    in_rows = rows[:, None] < length
    offs_q = rows[:, None] * DIM + dims[None, :]
    head_q = head.to(tl.int64) * length * DIM
    head_k = (head // GROUP).to(tl.int64) * length * DIM
    q = tl.load(q_ptr + head_q + offs_q, mask=in_rows, other=0.0)
    k_ptrs = k_ptr + head_k + cols[None, :] * DIM + dims[:, None]
    v_ptrs = v_ptr + head_k + cols[:, None] * DIM + dims[None, :]

    acc = tl.zeros((BLOCK_M, DIM), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    largest = tl.full((BLOCK_M,), -1e30, dtype=tl.float32)
    for _ in range(first // BLOCK_N):  # every query of the tile sees these positions
        k = tl.load(k_ptrs)
        v = tl.load(v_ptrs)
        scores = tl.dot(q, k) * scale
        higher = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        factor = tl.exp2(largest - higher)
        total = total * factor + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(tl.bfloat16), v, acc=acc * factor[:, None])
        largest = higher
        k_ptrs += BLOCK_N * DIM
        v_ptrs += BLOCK_N * DIM

    for step in range(BLOCK_M // BLOCK_N):  # on the diagonal
        at = first + step * BLOCK_N + cols
        k = tl.load(k_ptrs, mask=at[None, :] < length, other=0.0)
        v = tl.load(v_ptrs, mask=at[:, None] < length, other=0.0)
        scores = tl.where(at[None, :] <= rows[:, None], tl.dot(q, k) * scale, -1e30)
        higher = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        factor = tl.exp2(largest - higher)
        total = total * factor + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(tl.bfloat16), v, acc=acc * factor[:, None])
        largest = higher
        k_ptrs += BLOCK_N * DIM
        v_ptrs += BLOCK_N * DIM

    tl.store(out_ptr + head_q + offs_q, (acc * (1.0 / total)[:, None]).to(tl.bfloat16), mask=in_rows)


def options() -> dict[str, int]:
    """Return the launch options that the backend knows."""
    names = ("num_warps", "num_stages", *(AMD_ONLY if torch.version.hip else ()))
    return {name: TUNABLES[name] for name in names}


def custom_kernel(data: Data) -> torch.Tensor:
    """Write the attention of every head into `out` and return it."""
    q, k, v, out = data
    batch, heads, length, _ = q.shape
    attention_kernel[(batch * heads, triton.cdiv(length, TUNABLES["BLOCK_M"]))](
        q,
        k,
        v,
        out,
        length,
        DIM**-0.5 * LOG2_E,
        BLOCK_M=TUNABLES["BLOCK_M"],
        BLOCK_N=TUNABLES["BLOCK_N"],
        DIM=DIM,
        GROUP=GROUP,
        **options(),
    )
    return out
