"""Causal attention over a prompt (prefill) with grouped queries: four query heads share a key and value head.

bf16 in and out, fp32 inside. Q, K and V are already projected and rotated.
"""

import torch

GROUP = 4  # query heads per key and value head, as in Llama 3 8B and Mistral 7B
DIM = 128  # of a head
RTOL, OF_ROW = 1e-2, 1e-2  # of the element, and of its row's root mean square

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def generate_input(batch: int, kvheads: int, length: int, seed: int) -> Data:
    """Return `(q, k, v, out)`, bf16.

    q and out [batch, 4 * kvheads, length, 128], k and v [batch, kvheads, length, 128], contiguous. out is to be
    written. Heads differ in the spread of q, so some attend to few positions and some to all.
    """
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)

    def normal(heads: int) -> torch.Tensor:
        shape = (batch, heads, length, DIM)
        return torch.randn(shape, device="cuda", dtype=torch.float32, generator=gen)

    spread = torch.rand((1, GROUP * kvheads, 1, 1), device="cuda", dtype=torch.float32, generator=gen) * 2 + 0.5
    q = (normal(GROUP * kvheads) * spread).to(torch.bfloat16)
    k, v = normal(kvheads).to(torch.bfloat16), normal(kvheads).to(torch.bfloat16)
    return q, k, v, torch.zeros_like(q)


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return the attention of one head: q, k, v [length, 128]."""
    scores = (q @ k.T) * DIM**-0.5
    future = torch.ones(scores.shape, dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v


def _every_head(data: Data, dtype: torch.dtype, out: torch.Tensor) -> torch.Tensor:
    q, k, v, _ = data
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            one = _attention(q[b, h].to(dtype), k[b, h // GROUP].to(dtype), v[b, h // GROUP].to(dtype))
            out[b, h] = one.to(torch.bfloat16)
    return out


def ref_kernel(data: Data) -> torch.Tensor:
    """out = softmax(q @ k.T / sqrt(128), positions up to the query's own) @ v, head by head in fp32."""
    return _every_head(data, torch.float32, data[3])


def golden_kernel(data: Data) -> torch.Tensor:
    """The same in double precision, rounded once."""
    return _every_head(data, torch.float64, torch.empty_like(data[3]))


def check_implementation(data: Data, output: torch.Tensor) -> tuple[bool, str]:
    """|output - reference| <= RTOL * |reference| + OF_ROW * rms(reference's row), everywhere; no NaN, no infinity.

    An average over many positions is small, so no absolute tolerance suits all rows.
    """
    expected = _every_head(data, torch.float32, torch.empty_like(data[3]))
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
