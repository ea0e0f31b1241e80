"""Latent attention: three launches, one program of the second per sequence and 16 heads. Nothing tuned.

First the heads' key matrices are absorbed into the queries, then the latents are attended to, at last each head's value
matrix is applied to its weighted latent.
"""

import torch
import triton
import triton.language as tl

NOPE, ROPE, LATENT = 128, 64, 512
BLOCK_H = 16  # heads of a program
BLOCK = 32  # positions of a step

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
    latent_ptr,  # bf16, memory [batch][heads][512]
    length,
    scale,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK: tl.constexpr,
):
    sequence, heads = tl.program_id(0), tl.num_programs(1) * BLOCK_H
    rows = sequence * heads + tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    dims = tl.arange(0, LATENT)
    rotated = tl.arange(0, ROPE)
    query = tl.load(query_ptr + rows[:, None] * LATENT + dims[None, :])
    rope = tl.load(rope_ptr + rows[:, None] * ROPE + rotated[None, :])
    base = cache_ptr + sequence.to(tl.int64) * length * (LATENT + ROPE)

    acc = tl.zeros((BLOCK_H, LATENT), dtype=tl.float32)
    total = tl.zeros((BLOCK_H,), dtype=tl.float32)
    largest = tl.full((BLOCK_H,), -1e30, dtype=tl.float32)
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        places = base + at[:, None] * (LATENT + ROPE)
        latents = tl.load(places + dims[None, :], mask=at[:, None] < length, other=0.0)
        keys = tl.load(places + LATENT + rotated[None, :], mask=at[:, None] < length, other=0.0)
        scores = (tl.dot(query, tl.trans(latents)) + tl.dot(rope, tl.trans(keys))) * scale
        scores = tl.where(at[None, :] < length, scores, -1e30)
        higher = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp(scores - higher[:, None])
        factor = tl.exp(largest - higher)
        total = total * factor + tl.sum(weights, axis=1)
        acc = acc * factor[:, None] + tl.dot(weights.to(tl.bfloat16), latents)
        largest = higher

    tl.store(latent_ptr + rows[:, None] * LATENT + dims[None, :], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def value_kernel(
    latent_ptr,  # bf16, memory [batch][heads][512]
    w_ptr,  # bf16, memory [heads][128][512]
    out_ptr,  # bf16, memory [batch][heads][128]
    batch,
    NOPE: tl.constexpr,
    LATENT: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    head, heads = tl.program_id(0), tl.num_programs(0)
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    dims = tl.arange(0, NOPE)
    in_rows = rows[:, None] < batch
    acc = tl.zeros((BLOCK, NOPE), dtype=tl.float32)
    for step in range(LATENT // BLOCK_C):
        cols = step * BLOCK_C + tl.arange(0, BLOCK_C)
        latents = tl.load(latent_ptr + (rows[:, None] * heads + head) * LATENT + cols[None, :], mask=in_rows, other=0.0)
        w = tl.load(w_ptr + (head * NOPE + dims[None, :]) * LATENT + cols[:, None])
        acc += tl.dot(latents, w)
    tl.store(out_ptr + (rows[:, None] * heads + head) * NOPE + dims[None, :], acc.to(tl.bfloat16), mask=in_rows)


def custom_kernel(data: Data) -> torch.Tensor:
    """Write each head's attention into `out` and return it."""
    q_nope, q_rope, w_k, w_v, cache, out = data
    batch, heads, _ = out.shape
    query = torch.empty((batch, heads, LATENT), dtype=torch.bfloat16, device=out.device)
    latent = torch.empty_like(query)
    blocks = triton.cdiv(batch, 16)
    absorb_kernel[(heads, LATENT // 128, blocks)](
        q_nope, w_k, query, batch, NOPE=NOPE, LATENT=LATENT, BLOCK=16, BLOCK_C=128
    )
    attention_kernel[(batch, heads // BLOCK_H)](
        query,
        q_rope,
        cache,
        latent,
        cache.shape[1],
        (NOPE + ROPE) ** -0.5,
        LATENT=LATENT,
        ROPE=ROPE,
        BLOCK_H=BLOCK_H,
        BLOCK=BLOCK,
    )
    value_kernel[(heads, blocks)](latent, w_v, out, batch, NOPE=NOPE, LATENT=LATENT, BLOCK=16, BLOCK_C=64)
    return out
