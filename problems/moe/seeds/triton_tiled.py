"""Mixture of experts: every expert computes every token; tiles, warps and stages declared as tunables.

Tiled for decoding batches, where reading the weights takes longest: a program has all tokens of a batch if BLOCK_M
allows it, so that weights are read once. Pointers advance along k.
"""

import torch
import triton
import triton.language as tl

TUNABLES = {
    "BLOCK_M": 128,
    "BLOCK_N": 64,
    "BLOCK_K": 64,
    "num_warps": 8,
    "num_stages": 2,
    "waves_per_eu": 0,  # 0 here and below: the compiler chooses
    "matrix_instr_nonkdim": 0,
}
CHOICES = {
    "BLOCK_M": [16, 32, 64, 128],  # tokens; with the other choices at most 64 KiB of LDS on gfx942
    "BLOCK_N": [32, 64, 128],  # rows of weights
    "BLOCK_K": [32, 64],  # divides 64, which divides hidden and inner
    "num_warps": [4, 8],
    "num_stages": [1, 2],
    "waves_per_eu": [0, 2, 3, 4],
    "matrix_instr_nonkdim": [0, 16],
}
AMD_ONLY = ("waves_per_eu", "matrix_instr_nonkdim")  # other backends refuse them
TOP_K = 4

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


@triton.jit
def router_kernel(
    x_ptr,  # bf16, memory [tokens][hidden]
    router_ptr,  # bf16, memory [experts][hidden]
    share_ptr,  # fp32, memory [tokens][experts + 1]
    tokens,
    hidden,
    experts,
    TOP_K: tl.constexpr,
    BLOCK: tl.constexpr,
    EXPERTS: tl.constexpr,  # a power of two, at least 16
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    numbers = tl.arange(0, EXPERTS)
    offs_k = tl.arange(0, BLOCK_K)
    in_rows = rows[:, None] < tokens
    logits = tl.zeros((BLOCK, EXPERTS), dtype=tl.float32)
    for step in range(hidden // BLOCK_K):
        at = step * BLOCK_K + offs_k
        x = tl.load(x_ptr + rows[:, None] * hidden + at[None, :], mask=in_rows, other=0.0)
        w = tl.load(router_ptr + numbers[None, :] * hidden + at[:, None], mask=numbers[None, :] < experts, other=0.0)
        logits = tl.dot(x, w, acc=logits)

    logits = tl.where(numbers[None, :] < experts, logits, -1e30)
    weights = tl.exp(logits - tl.max(logits, axis=1)[:, None])
    share = weights * 0.0
    rest = logits
    for _ in tl.static_range(TOP_K):
        best = tl.max(rest, axis=1)[:, None]
        chosen = numbers[None, :] == tl.min(tl.where(rest == best, numbers[None, :], EXPERTS), axis=1)[:, None]
        share = tl.where(chosen, weights, share)
        rest = tl.where(chosen, -2e30, rest)
    share = share / tl.sum(weights, axis=1)[:, None]
    offsets = rows[:, None] * (experts + 1) + numbers[None, :]
    tl.store(share_ptr + offsets, share, mask=in_rows & (numbers[None, :] < experts))
    tl.store(share_ptr + rows * (experts + 1) + experts, 1.0, mask=rows < tokens)


@triton.jit
def inner_kernel(
    x_ptr,  # bf16, memory [tokens][hidden]
    gate_ptr,  # bf16, memory [experts + 1][inner][hidden]
    up_ptr,  # likewise
    share_ptr,  # fp32, memory [tokens][experts + 1]
    h_ptr,  # bf16, memory [experts + 1][tokens][inner]
    tokens,
    hidden,
    inner,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    expert = tl.program_id(2)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    in_rows = rows[:, None] < tokens
    in_cols = cols[None, :] < inner
    base = expert.to(tl.int64) * inner * hidden
    gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # Masked loads below need no `other`: a row or column outside reaches only elements that are not stored.
    x_ptrs = x_ptr + rows[:, None] * hidden + offs_k[None, :]
    gate_ptrs = gate_ptr + base + cols[None, :] * hidden + offs_k[:, None]
    up_ptrs = up_ptr + base + cols[None, :] * hidden + offs_k[:, None]
    for _ in range(hidden // BLOCK_K):
        x = tl.load(x_ptrs, mask=in_rows)
        gate = tl.dot(x, tl.load(gate_ptrs, mask=in_cols), acc=gate)
        up = tl.dot(x, tl.load(up_ptrs, mask=in_cols), acc=up)
        x_ptrs += BLOCK_K
        gate_ptrs += BLOCK_K
        up_ptrs += BLOCK_K
    share = tl.load(share_ptr + rows * tl.num_programs(2) + expert, mask=rows < tokens, other=0.0)
    h = gate * tl.sigmoid(gate) * up * share[:, None]
    offs_h = (expert.to(tl.int64) * tokens + rows[:, None]) * inner + cols[None, :]
    tl.store(h_ptr + offs_h, h.to(tl.bfloat16), mask=in_rows & in_cols)


@triton.jit
def down_kernel(
    h_ptr,  # bf16, memory [experts + 1][tokens][inner]
    down_ptr,  # bf16, memory [experts + 1][hidden][inner]
    out_ptr,  # bf16, memory [tokens][hidden]
    tokens,
    hidden,
    inner,
    experts,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    in_rows = rows[:, None] < tokens
    in_cols = cols[None, :] < hidden
    steps = inner // BLOCK_K
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range((experts + 1) * steps):
        expert = (step // steps).to(tl.int64)
        at = step % steps * BLOCK_K + offs_k
        h = tl.load(h_ptr + (expert * tokens + rows[:, None]) * inner + at[None, :], mask=in_rows, other=0.0)
        w = tl.load(down_ptr + (expert * hidden + cols[None, :]) * inner + at[:, None], mask=in_cols, other=0.0)
        acc = tl.dot(h, w, acc=acc)
    tl.store(out_ptr + rows[:, None] * hidden + cols[None, :], acc.to(tl.bfloat16), mask=in_rows & in_cols)


def options() -> dict[str, int]:
    """Return the tile sizes, and the launch options that the backend knows."""
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages", *(AMD_ONLY if torch.version.hip else ()))
    return {name: TUNABLES[name] for name in names}


def custom_kernel(data: Data) -> torch.Tensor:
    """Write the mixture of the experts' outputs into `out` and return it."""
    x, router, gate, up, down, out = data
    tokens, hidden = x.shape
    experts, inner = router.shape[0], gate.shape[1]
    share = torch.empty((tokens, experts + 1), dtype=torch.float32, device=x.device)
    h = torch.empty((experts + 1, tokens, inner), dtype=torch.bfloat16, device=x.device)
    wide = max(16, triton.next_power_of_2(experts))
    router_kernel[(triton.cdiv(tokens, 16),)](
        x, router, share, tokens, hidden, experts, TOP_K=TOP_K, BLOCK=16, EXPERTS=wide, BLOCK_K=128
    )
    blocks = triton.cdiv(tokens, TUNABLES["BLOCK_M"])
    inner_kernel[(blocks, triton.cdiv(inner, TUNABLES["BLOCK_N"]), experts + 1)](
        x, gate, up, share, h, tokens, hidden, inner, **options()
    )
    down_kernel[(blocks, triton.cdiv(hidden, TUNABLES["BLOCK_N"]))](
        h, down, out, tokens, hidden, inner, experts, **options()
    )
    return out
