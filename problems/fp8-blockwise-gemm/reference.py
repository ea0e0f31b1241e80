"""Block-scaled fp8 GEMM, as in the fp8 task of the AMD Developer Challenge 2025.

`C[m, n] = sum_k (A[m, k] * a_scale[m, k // 128]) * (B[n, k] * b_scale[n // 128, k // 128])`, with A and B in
e4m3fnuz, column-major, scales in fp32, C in bf16, row-major.
"""

import torch

BLOCK = 128
RTOL, ATOL = 2e-2, 1e-3

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def generate_input(m: int, n: int, k: int, seed: int) -> Data:
    """Return `(a, b, a_scale, b_scale, c)`.

    a [m, k], b [n, k]: float8_e4m3fnuz, stored as [k, m] and [k, n] (column-major views).
    a_scale [m, k/128], b_scale [ceil(n/128), k/128]: fp32, normal (so also negative), column-major views.
    c [m, n]: bf16, row-major, to be written and returned.
    """
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)

    def normal(rows: int, cols: int) -> torch.Tensor:
        return torch.randn((rows, cols), device="cuda", dtype=torch.float32, generator=gen)

    blocks_n = (n + BLOCK - 1) // BLOCK
    a = normal(k, m).to(torch.float8_e4m3fnuz).T
    b = normal(k, n).to(torch.float8_e4m3fnuz).T
    a_scale = normal(k // BLOCK, m).T
    b_scale = normal(k // BLOCK, blocks_n).T
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
