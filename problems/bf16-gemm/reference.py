"""bf16 GEMM of a linear layer: C = A @ B.T, both operands contiguous along k. fp32 sums, bf16 result."""

import torch

RTOL, ATOL = 1e-2, 1e-3

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def generate_input(m: int, n: int, k: int, seed: int) -> Data:
    """Return `(a, b, c)`: a [m, k], b [n, k] (a linear layer's weight), c [m, n] to be written; bf16, row-major.

    b is scaled by 1 / sqrt(k), as weights are, so that elements of C are of the order of one.
    """
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    a = torch.randn((m, k), device="cuda", dtype=torch.float32, generator=gen).to(torch.bfloat16)
    b = (torch.randn((n, k), device="cuda", dtype=torch.float32, generator=gen) / k**0.5).to(torch.bfloat16)
    return a, b, torch.zeros((m, n), device="cuda", dtype=torch.bfloat16)


def ref_kernel(data: Data) -> torch.Tensor:
    """Multiply in fp32, round to bf16."""
    a, b, c = data
    c[...] = (a.to(torch.float32) @ b.to(torch.float32).T).to(torch.bfloat16)
    return c


def golden_kernel(data: Data) -> torch.Tensor:
    """The same in double precision, rounded once."""
    a, b, _ = data
    return (a.to(torch.float64) @ b.to(torch.float64).T).to(torch.bfloat16)


def check_implementation(data: Data, output: torch.Tensor) -> tuple[bool, str]:
    """|output - reference| <= ATOL + RTOL * |reference| in fp32, everywhere; no NaN, no infinity."""
    a, b, c = data
    expected = ref_kernel((a, b, torch.empty_like(c)))
    if output.shape != expected.shape:
        return False, f"shape {tuple(output.shape)}, expected {tuple(expected.shape)}"
    got, want = output.to(torch.float32), expected.to(torch.float32)
    wrong = ~((got - want).abs() <= ATOL + RTOL * want.abs())  # NaN compares false, so it counts as wrong
    if not bool(wrong.any()):
        return True, ""
    i, j = (int(x) for x in wrong.nonzero()[0])
    return False, (
        f"{int(wrong.sum())} of {wrong.numel()} elements differ, first at [{i}, {j}]: "
        f"{float(got[i, j]):.6g}, expected {float(want[i, j]):.6g}"
    )
