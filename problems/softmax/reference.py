"""Softmax over the last dimension: a memory-bound problem. bf16 in and out, fp32 inside."""

import torch

RTOL, ATOL = 1e-2, 1e-7  # a row of 150000 logits has probabilities near 7e-6: a larger ATOL would not see them

Data = tuple[torch.Tensor, torch.Tensor]


def generate_input(rows: int, cols: int, seed: int) -> Data:
    """Return `(x, out)`: x bf16 [rows, cols], out bf16 [rows, cols] to be written.

    Rows differ in location and in spread, so some are nearly flat and some have a single large probability.
    """
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.randn((rows, cols), device="cuda", dtype=torch.float32, generator=gen)
    spread = torch.rand((rows, 1), device="cuda", dtype=torch.float32, generator=gen) * 3 + 0.5
    location = torch.randn((rows, 1), device="cuda", dtype=torch.float32, generator=gen) * 4
    x = (x * spread + location).to(torch.bfloat16)
    return x, torch.zeros_like(x)


def ref_kernel(data: Data) -> torch.Tensor:
    """out = exp(x - max(x)) / sum(exp(x - max(x))), row by row."""
    x, out = data
    out[...] = torch.softmax(x.to(torch.float32), dim=-1).to(torch.bfloat16)
    return out


def golden_kernel(data: Data) -> torch.Tensor:
    """The same in double precision, rounded once."""
    return torch.softmax(data[0].to(torch.float64), dim=-1).to(torch.bfloat16)


def check_implementation(data: Data, output: torch.Tensor) -> tuple[bool, str]:
    """|output - reference| <= ATOL + RTOL * |reference|, everywhere; no NaN, no infinity."""
    x, out = data
    expected = ref_kernel((x, torch.empty_like(out)))
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
