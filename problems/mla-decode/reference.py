"""Multi-head latent attention as in DeepSeek V2 and V3, one decoding step over a cache of latents.

The cache holds one row per position for all heads: a latent of 512 values, from which each head's keys and values
follow by its own matrices, and 64 rotated values that all heads share. bf16 in and out, fp32 inside.
"""

import torch

NOPE, ROPE, LATENT = 128, 64, 512  # of a head's key: part without rotation, rotated part; latent of a position
RTOL, OF_ROW = 1e-2, 3e-2  # of the element, and of its row's root mean square

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def generate_input(batch: int, heads: int, length: int, seed: int) -> Data:
    """Return `(q_nope, q_rope, w_k, w_v, cache, out)`, bf16, contiguous.

    q_nope [batch, heads, 128], q_rope [batch, heads, 64], w_k and w_v [heads, 128, 512], cache [batch, length, 576],
    out [batch, heads, 128] to be written. The matrices are scaled by 1 / sqrt(inputs).
    """
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16, generator=gen)

    q_nope, q_rope = normal(batch, heads, NOPE), normal(batch, heads, ROPE)
    w_k = normal(heads, NOPE, LATENT).mul_(NOPE**-0.5)
    w_v = normal(heads, NOPE, LATENT).mul_(LATENT**-0.5)
    cache = normal(batch, length, LATENT + ROPE)
    return q_nope, q_rope, w_k, w_v, cache, torch.zeros_like(q_nope)


def _output(data: Data, dtype: torch.dtype) -> torch.Tensor:
    q_nope, q_rope, w_k, w_v, cache, _ = data
    absorbed = torch.einsum("bhd,hdc->bhc", q_nope.to(dtype), w_k.to(dtype))
    query = torch.cat([absorbed, q_rope.to(dtype)], dim=-1) * (NOPE + ROPE) ** -0.5
    latents = torch.empty_like(absorbed)
    for b in range(len(query)):  # one sequence at a time: the cache is large
        rows = cache[b].to(dtype)
        latents[b] = torch.softmax(query[b] @ rows.T, dim=-1) @ rows[:, :LATENT]
    return torch.einsum("bhc,hdc->bhd", latents, w_v.to(dtype)).to(torch.bfloat16)


def ref_kernel(data: Data) -> torch.Tensor:
    """Attend to the latents with each head's absorbed query, then apply the head's value matrix; in fp32."""
    out = data[5]
    out[...] = _output(data, torch.float32)
    return out


def golden_kernel(data: Data) -> torch.Tensor:
    """The definition in double precision: each head's keys and values are written out. Rounded once."""
    q_nope, q_rope, w_k, w_v, cache, _ = (x.to(torch.float64) for x in data)
    out = torch.empty_like(q_nope)
    for b in range(cache.shape[0]):
        latents, rotated = cache[b, :, :LATENT], cache[b, :, LATENT:]
        for h in range(w_k.shape[0]):
            scores = latents @ w_k[h].T @ q_nope[b, h] + rotated @ q_rope[b, h]
            out[b, h] = torch.softmax(scores * (NOPE + ROPE) ** -0.5, dim=0) @ (latents @ w_v[h].T)
    return out.to(torch.bfloat16)


def check_implementation(data: Data, output: torch.Tensor) -> tuple[bool, str]:
    """|output - reference| <= RTOL * |reference| + OF_ROW * rms(reference's row), everywhere; no NaN, no infinity.

    An average over many positions is small, so no absolute tolerance suits all lengths.
    """
    expected = _output(data, torch.float32)
    if output.shape != expected.shape:
        return False, f"shape {tuple(output.shape)}, expected {tuple(expected.shape)}"
    got, want = output.to(torch.float32), expected.to(torch.float32)
    slack = RTOL * want.abs() + OF_ROW * want.square().mean(dim=-1, keepdim=True).sqrt()
    wrong = ~((got - want).abs() <= slack)  # NaN compares false, so it counts as wrong
    if not bool(wrong.any()):
        return True, ""
    place = tuple(int(x) for x in wrong.nonzero()[0])
    return False, (
        f"{int(wrong.sum())} of {wrong.numel()} elements differ, first at {list(place)}: "
        f"{float(got[place]):.6g}, expected {float(want[place]):.6g}"
    )
