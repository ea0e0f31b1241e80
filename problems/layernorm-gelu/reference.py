"""Layer normalisation followed by GELU, fused: a memory-bound problem. bf16 in and out, fp32 inside."""

import math

import torch
from torch.nn import functional

EPS = 1e-5
RTOL, ATOL = 1e-2, 1e-3

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def generate_input(rows: int, cols: int, seed: int) -> Data:
    """Return `(x, weight, bias, out)`: x bf16 [rows, cols], weight and bias fp32 [cols], out bf16 [rows, cols].

    Rows differ in mean and in spread, so that neither may be taken as known. out is to be written.
    """
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.randn((rows, cols), device="cuda", dtype=torch.float32, generator=gen)
    spread = torch.rand((rows, 1), device="cuda", dtype=torch.float32, generator=gen) * 4 + 0.05
    location = torch.randn((rows, 1), device="cuda", dtype=torch.float32, generator=gen)
    weight = torch.randn(cols, device="cuda", dtype=torch.float32, generator=gen)
    bias = torch.randn(cols, device="cuda", dtype=torch.float32, generator=gen)
    x = (x * spread + location).to(torch.bfloat16)
    return x, weight, bias, torch.zeros_like(x)


def ref_kernel(data: Data) -> torch.Tensor:
    """out = gelu((x - mean(x)) / sqrt(var(x) + EPS) * weight + bias), row by row, var without Bessel's correction."""
    x, weight, bias, out = data
    y = functional.layer_norm(x.to(torch.float32), weight.shape, weight, bias, EPS)
    out[...] = functional.gelu(y, approximate="tanh").to(torch.bfloat16)
    return out


def golden_kernel(data: Data) -> torch.Tensor:
    """The same in double precision, by the formulas, rounded once."""
    x, weight, bias, _ = data
    x64 = x.to(torch.float64)
    centred = x64 - x64.mean(dim=-1, keepdim=True)
    y = centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + EPS) * weight + bias
    return (0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))).to(torch.bfloat16)


def check_implementation(data: Data, output: torch.Tensor) -> tuple[bool, str]:
    """|output - reference| <= ATOL + RTOL * |reference|, everywhere; no NaN, no infinity."""
    x, weight, bias, out = data
    expected = ref_kernel((x, weight, bias, torch.empty_like(out)))
    if output.shape != expected.shape:
        return False, f"shape {tuple(output.shape)}, expected {tuple(expected.shape)}"
    got, want = output.to(torch.float32), expected.to(torch.float32)
    wrong = ~((got - want).abs() <= ATOL + RTOL * want.abs())  # NaN compares false, so it counts as wrong
    if not bool(wrong.any()):
        return True, ""
    i, j = (int(v) for v in wrong.nonzero()[0])
    return False, (
        f"{int(wrong.sum())} of {wrong.numel()} elements differ, first at [{i}, {j}]: "
        f"{float(got[i, j]):.6g}, expected {float(want[i, j]):.6g}"
    )
