"""Mixture of experts as in DeepSeek's models: softmax router, the four best experts of a token, one shared expert.

bf16 in and out, fp32 inside. Weights of all experts are stacked; the last expert is the shared one.
"""

import torch
from torch.nn import functional

TOP_K = 4  # routed experts per token
RTOL, OF_ROW = 1e-2, 1e-2  # of the element, and of its row's root mean square
GAP = 1e-4  # logits that differ by less may be ordered either way

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def generate_input(tokens: int, hidden: int, inner: int, experts: int, seed: int) -> Data:
    """Return `(x, router, gate, up, down, out)`, bf16, contiguous.

    x and out [tokens, hidden], router [experts, hidden], gate and up [experts + 1, inner, hidden],
    down [experts + 1, hidden, inner]. Weights are scaled by 1 / sqrt(inputs), the router's by twice that, so that
    probabilities differ. out is to be written.
    """
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16, generator=gen)

    x, router = normal(tokens, hidden), normal(experts, hidden) * (2 * hidden**-0.5)
    gate = normal(experts + 1, inner, hidden).mul_(hidden**-0.5)
    up = normal(experts + 1, inner, hidden).mul_(hidden**-0.5)
    down = normal(experts + 1, hidden, inner).mul_(inner**-0.5)
    return x, router, gate, up, down, torch.zeros_like(x)


def _best(data: Data, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits [tokens, experts] and the experts of each token by rank, one more than are used."""
    logits = data[0].to(dtype) @ data[1].to(dtype).T
    return logits, logits.topk(min(TOP_K + 1, logits.shape[1]), dim=-1).indices


def _shares(logits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return the factors [tokens, experts + 1] of all experts' outputs; the shared one's is 1."""
    kept = torch.zeros_like(logits).scatter(1, chosen, 1.0)
    return torch.cat([torch.softmax(logits, dim=-1) * kept, torch.ones_like(logits[:, :1])], dim=1)


def _mixed(data: Data, shares: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return sum over e of shares[:, e] * (silu(x @ gate[e].T) * (x @ up[e].T)) @ down[e].T."""
    x, _, gate, up, down, _ = data
    total = torch.zeros(x.shape[0], down.shape[1], dtype=dtype, device=x.device)  # a part may have fewer columns than x
    for e in range(gate.shape[0]):
        taken = shares[:, e].nonzero().flatten()
        if len(taken):
            rows = x[taken].to(dtype)
            h = functional.silu(rows @ gate[e].to(dtype).T) * (rows @ up[e].to(dtype).T)
            total[taken] += shares[taken, e, None] * (h @ down[e].to(dtype).T)
    return total


def _output(data: Data, dtype: torch.dtype) -> torch.Tensor:
    logits, best = _best(data, dtype)
    return _mixed(data, _shares(logits, best[:, :TOP_K]), dtype).to(torch.bfloat16)


def ref_kernel(data: Data) -> torch.Tensor:
    """out = shared(x) + sum over the four most probable experts e of p_e * expert_e(x), in fp32."""
    out = data[5]
    out[...] = _output(data, torch.float32)
    return out


def golden_kernel(data: Data) -> torch.Tensor:
    """The same in double precision, rounded once."""
    return _output(data, torch.float64)


def _differs(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    slack = RTOL * want.abs() + OF_ROW * want.square().mean(dim=-1, keepdim=True).sqrt()
    return ~((got - want).abs() <= slack)  # NaN compares false, so it counts as wrong


def check_implementation(data: Data, output: torch.Tensor) -> tuple[bool, str]:
    """|output - reference| <= RTOL * |reference| + OF_ROW * rms(reference's row), everywhere; no NaN, no infinity.

    A token whose fourth and fifth expert have nearly equal logits may use either.
    """
    logits, best = _best(data, torch.float32)
    want = _mixed(data, _shares(logits, best[:, :TOP_K]), torch.float32).to(torch.bfloat16).to(torch.float32)
    if output.shape != want.shape:
        return False, f"shape {tuple(output.shape)}, expected {tuple(want.shape)}"
    got = output.to(torch.float32)
    wrong = _differs(got, want)
    if best.shape[1] > TOP_K:
        ranked = logits.gather(1, best)
        close = (ranked[:, TOP_K - 1] - ranked[:, TOP_K] < GAP) & wrong.any(dim=1)
        if bool(close.any()):
            other = torch.cat([best[:, : TOP_K - 1], best[:, TOP_K:]], dim=1)
            some = (data[0][close], *data[1:])
            wrong[close] &= _differs(got[close], _mixed(some, _shares(logits[close], other[close]), torch.float32))
    if not bool(wrong.any()):
        return True, ""
    i, j = (int(v) for v in wrong.nonzero()[0])
    return False, (
        f"{int(wrong.sum())} of {wrong.numel()} elements differ, first at [{i}, {j}]: "
        f"{float(got[i, j]):.6g}, expected {float(want[i, j]):.6g}"
    )
