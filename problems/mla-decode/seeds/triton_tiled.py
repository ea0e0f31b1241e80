"""Latent attention: positions of a sequence are split among SPLITS programs, whose parts the last kernel merges.

Splits fill the GPU when sequences are few: 4 sequences of 16 heads would be 4 programs. Exponentials are powers of two.
"""

import torch
import triton
import triton.language as tl

TUNABLES = {
    "SPLITS": 16,
    "BLOCK_N": 32,
    "num_warps": 4,
    "num_stages": 1,
    "waves_per_eu": 0,  # 0 here and below: the compiler chooses
    "kpack": 1,
}
CHOICES = {
    "SPLITS": [1, 2, 4, 8, 16, 32],  # at most so many programs per sequence and 16 heads
    "BLOCK_N": [16, 32],  # positions of a step
    "num_warps": [4, 8],
    "num_stages": [1],  # a second copy of the latents does not fit into 64 KiB of LDS
    "waves_per_eu": [0, 2, 3, 4],
    "kpack": [1, 2],
}
AMD_ONLY = ("waves_per_eu", "kpack")  # other backends refuse them
NOPE, ROPE, LATENT = 128, 64, 512
BLOCK_H = 16  # heads of a program
LOG2_E = 1.4426950408889634

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


@triton.jit
def absorb_kernel(
    q_ptr,  # bf16, memory [batch][heads][128]
    w_ptr,  # bf16, memory [heads][128][512]
    query_ptr,  # bf16, memory [batch][heads][512]
    batch,
    NOPE: tl.constexpr,
    LATENT: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    head, heads = tl.program_id(0), tl.num_programs(0)
    rows = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    dims = tl.arange(0, NOPE)
    in_rows = rows[:, None] < batch
    q = tl.load(q_ptr + (rows[:, None] * heads + head) * NOPE + dims[None, :], mask=in_rows, other=0.0)
    w = tl.load(w_ptr + (head * NOPE + dims[:, None]) * LATENT + cols[None, :])
    query = tl.dot(q, w).to(tl.bfloat16)
    tl.store(query_ptr + (rows[:, None] * heads + head) * LATENT + cols[None, :], query, mask=in_rows)


@triton.jit
def attention_kernel(
    query_ptr,  # bf16, memory [batch][heads][512]
    rope_ptr,  # bf16, memory [batch][heads][64]
    cache_ptr,  # bf16, memory [batch][length][576]
    part_ptr,  # fp32, memory [splits][batch][heads][512]: weighted sums of latents
    state_ptr,  # fp32, memory [splits][2][batch][heads]: largest score, sum of weights
    length,
    scale,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    sequence, split, heads = tl.program_id(0), tl.program_id(2), tl.num_programs(1) * BLOCK_H
    every = tl.num_programs(0) * heads
    rows = sequence * heads + tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    dims = tl.arange(0, LATENT)
    rotated = tl.arange(0, ROPE)
    query = tl.load(query_ptr + rows[:, None] * LATENT + dims[None, :])
    rope = tl.load(rope_ptr + rows[:, None] * ROPE + rotated[None, :])
    base = cache_ptr + sequence.to(tl.int64) * length * (LATENT + ROPE)

    steps = tl.cdiv(tl.cdiv(length, BLOCK_N), tl.num_programs(2))
    acc = tl.zeros((BLOCK_H, LATENT), dtype=tl.float32)
    total = tl.zeros((BLOCK_H,), dtype=tl.float32)
    largest = tl.full((BLOCK_H,), -1e30, dtype=tl.float32)
    for step in range(steps):
        at = (split * steps + step) * BLOCK_N + tl.arange(0, BLOCK_N)
        places = base + at[:, None] * (LATENT + ROPE)
        latents = tl.load(places + dims[None, :], mask=at[:, None] < length, other=0.0)
        keys = tl.load(places + LATENT + rotated[None, :], mask=at[:, None] < length, other=0.0)
        scores = tl.dot(rope, tl.trans(keys), acc=tl.dot(query, tl.trans(latents))) * scale
        scores = tl.where(at[None, :] < length, scores, -1e30)
        higher = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.where(at[None, :] < length, tl.exp2(scores - higher[:, None]), 0.0)  # 0 for an empty part
        factor = tl.exp2(largest - higher)
        total = total * factor + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(tl.bfloat16), latents, acc=acc * factor[:, None])
        largest = higher

    tl.store(part_ptr + (split.to(tl.int64) * every + rows[:, None]) * LATENT + dims[None, :], acc)
    tl.store(state_ptr + split * 2 * every + rows, largest)
    tl.store(state_ptr + (split * 2 + 1) * every + rows, total)


@triton.jit
def value_kernel(
    part_ptr,  # fp32, memory [splits][batch][heads][512]
    state_ptr,  # fp32, memory [splits][2][batch][heads]
    w_ptr,  # bf16, memory [heads][128][512]
    out_ptr,  # bf16, memory [batch][heads][128]
    batch,
    NOPE: tl.constexpr,
    LATENT: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    head, heads = tl.program_id(0), tl.num_programs(0)
    sequences = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    rows = sequences * heads + head
    every = batch * heads
    dims = tl.arange(0, NOPE)
    inside = sequences < batch
    top = tl.full((BLOCK,), -1e30, dtype=tl.float32)
    for split in range(SPLITS):
        top = tl.maximum(top, tl.load(state_ptr + split * 2 * every + rows, mask=inside, other=-1e30))
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(SPLITS):
        factor = tl.exp2(tl.load(state_ptr + split * 2 * every + rows, mask=inside, other=-1e30) - top)
        total += factor * tl.load(state_ptr + (split * 2 + 1) * every + rows, mask=inside, other=1.0)
    acc = tl.zeros((BLOCK, NOPE), dtype=tl.float32)
    for step in range(LATENT // BLOCK_C):
        cols = step * BLOCK_C + tl.arange(0, BLOCK_C)
        latents = tl.zeros((BLOCK, BLOCK_C), dtype=tl.float32)
        for split in range(SPLITS):
            factor = tl.exp2(tl.load(state_ptr + split * 2 * every + rows, mask=inside, other=-1e30) - top)
            offsets = (split * every.to(tl.int64) + rows[:, None]) * LATENT + cols[None, :]
            latents += factor[:, None] * tl.load(part_ptr + offsets, mask=inside[:, None], other=0.0)
        w = tl.load(w_ptr + (head * NOPE + dims[None, :]) * LATENT + cols[:, None])
        acc = tl.dot((latents / total[:, None]).to(tl.bfloat16), w, acc=acc)
    tl.store(out_ptr + rows[:, None] * NOPE + dims[None, :], acc.to(tl.bfloat16), mask=inside[:, None])


def options() -> dict[str, int]:
    """Return the launch options that the backend knows."""
    names = ("num_warps", "num_stages", *(AMD_ONLY if torch.version.hip else ()))
    return {name: TUNABLES[name] for name in names}


def custom_kernel(data: Data) -> torch.Tensor:
    """Write each head's attention into `out` and return it."""
    q_nope, q_rope, w_k, w_v, cache, out = data
    batch, heads, _ = out.shape
    length, blocks = cache.shape[1], triton.cdiv(batch, 16)
    splits = min(TUNABLES["SPLITS"], triton.cdiv(length, TUNABLES["BLOCK_N"]))
    query = torch.empty((batch, heads, LATENT), dtype=torch.bfloat16, device=out.device)
    part = torch.empty((splits, batch, heads, LATENT), dtype=torch.float32, device=out.device)
    state = torch.empty((splits, 2, batch, heads), dtype=torch.float32, device=out.device)
    absorb_kernel[(heads, LATENT // 128, blocks)](
        q_nope, w_k, query, batch, NOPE=NOPE, LATENT=LATENT, BLOCK=16, BLOCK_C=128
    )
    attention_kernel[(batch, heads // BLOCK_H, splits)](
        query,
        q_rope,
        cache,
        part,
        state,
        length,
        (NOPE + ROPE) ** -0.5 * LOG2_E,
        LATENT=LATENT,
        ROPE=ROPE,
        BLOCK_H=BLOCK_H,
        BLOCK_N=TUNABLES["BLOCK_N"],
        **options(),
    )
    value_kernel[(heads, blocks)](
        part, state, w_v, out, batch, NOPE=NOPE, LATENT=LATENT, SPLITS=splits, BLOCK=16, BLOCK_C=128
    )
    return out
