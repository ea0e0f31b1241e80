"""Block-scaled fp8 GEMM on row-major operands, as inference servers call it.

`C[m, n] = sum_k (A[m, k] * a_scale[m, k // 128]) * (B[n, k] * b_scale[n // 128, k // 128])`, with A and B in
e4m3fnuz, scales in fp32, C in bf16, everything row-major.
"""

import torch

BLOCK = 128
RTOL, ATOL = 2e-2, 1e-3

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def generate_input(m: int, n: int, k: int, seed: int) -> Data:
    """Return `(a, b, a_scale, b_scale, c)`.

    a [m, k], b [n, k]: float8_e4m3fnuz. a_scale [m, k/128], b_scale [ceil(n/128), k/128]: fp32, normal (so also
    negative). c [m, n]: bf16, to be written and returned. All row-major.
    """
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)

    def normal(rows: int, cols: int) -> torch.Tensor:
        return torch.randn((rows, cols), device="cuda", dtype=torch.float32, generator=gen)

    a = normal(m, k).to(torch.float8_e4m3fnuz)
    b = normal(n, k).to(torch.float8_e4m3fnuz)
    a_scale = normal(m, k // BLOCK)
    b_scale = normal((n + BLOCK - 1) // BLOCK, k // BLOCK)
    return a, b, a_scale, b_scale, torch.zeros((m, n), device="cuda", dtype=torch.bfloat16)


def ref_kernel(data: Data) -> torch.Tensor:
    """Dequantise to fp32, multiply, round to bf16."""
    a, b, a_scale, b_scale, c = data
    n, k = b.shape
    a32 = a.to(torch.float32) * a_scale.repeat_interleave(BLOCK, dim=1)[:, :k]
    b_scales = b_scale.repeat_interleave(BLOCK, dim=0)[:n].repeat_interleave(BLOCK, dim=1)[:, :k]
    b32 = b.to(torch.float32) * b_scales
    c[...] = (a32 @ b32.T).to(torch.bfloat16)
    return c


def golden_kernel(data: Data) -> torch.Tensor:
    """The same in double precision, rounded once."""
    a, b, a_scale, b_scale, _ = data
    n, k = b.shape
    a64 = a.to(torch.float64) * a_scale.repeat_interleave(BLOCK, dim=1)[:, :k]
    b_scales = b_scale.repeat_interleave(BLOCK, dim=0)[:n].repeat_interleave(BLOCK, dim=1)[:, :k]
    return (a64 @ (b.to(torch.float64) * b_scales).T).to(torch.bfloat16)


def check_implementation(data: Data, output: torch.Tensor) -> tuple[bool, str]:
    """|output - reference| <= ATOL + RTOL * |reference| in fp32, everywhere; no NaN, no infinity."""
    a, b, a_scale, b_scale, c = data
    expected = ref_kernel((a, b, a_scale, b_scale, torch.empty_like(c)))
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
