"""RMS normalisation over the last dimension: a memory-bound problem. bf16 in and out, fp32 inside."""

import torch

EPS = 1e-6
RTOL, ATOL = 1e-2, 1e-3

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def generate_input(rows: int, cols: int, seed: int) -> Data:
    """Return `(x, weight, out)`: x bf16 [rows, cols], weight fp32 [cols], out bf16 [rows, cols] to be written."""
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.randn((rows, cols), device="cuda", dtype=torch.float32, generator=gen)
    spread = torch.rand((rows, 1), device="cuda", dtype=torch.float32, generator=gen) * 4 + 0.05
    weight = torch.randn(cols, device="cuda", dtype=torch.float32, generator=gen)
    x = (x * spread).to(torch.bfloat16)
    return x, weight, torch.zeros_like(x)


def ref_kernel(data: Data) -> torch.Tensor:
    """out = x / sqrt(mean(x^2) + EPS) * weight."""
    x, weight, out = data
    x32 = x.to(torch.float32)
    out[...] = (x32 * torch.rsqrt(x32.square().mean(dim=-1, keepdim=True) + EPS) * weight).to(torch.bfloat16)
    return out


def golden_kernel(data: Data) -> torch.Tensor:
    """The same in double precision, rounded once."""
    x, weight, _ = data
    x64 = x.to(torch.float64)
    return (x64 * torch.rsqrt(x64.square().mean(dim=-1, keepdim=True) + EPS) * weight).to(torch.bfloat16)


def check_implementation(data: Data, output: torch.Tensor) -> tuple[bool, str]:
    """|output - reference| <= ATOL + RTOL * |reference|, everywhere; no NaN, no infinity."""
    x, weight, out = data
    expected = ref_kernel((x, weight, torch.empty_like(out)))
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
