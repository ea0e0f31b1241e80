"""bf16 GEMM: tiles of C in groups of rows, pointers advanced along k, tile and launch options declared as tunables."""

import torch
import triton
import triton.language as tl

TUNABLES = {
    "BLOCK_M": 64,
    "BLOCK_N": 128,
    "BLOCK_K": 64,
    "GROUP_M": 8,
    "num_warps": 4,
    "num_stages": 2,
    "waves_per_eu": 0,  # 0 here and below: the compiler chooses
    "matrix_instr_nonkdim": 0,
    "kpack": 1,
}
CHOICES = {
    "BLOCK_M": [16, 32, 64, 128],  # with the other choices at most 64 KiB of LDS on gfx942
    "BLOCK_N": [32, 64, 128],
    "BLOCK_K": [32, 64],  # divides 64, which divides k
    "GROUP_M": [1, 4, 8, 16],
    "num_warps": [4, 8],
    "num_stages": [1, 2, 3],
    "waves_per_eu": [0, 2, 3, 4],
    "matrix_instr_nonkdim": [0, 16],
    "kpack": [1, 2],
}
AMD_ONLY = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")  # other backends refuse them

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@triton.jit
def gemm_kernel(
    a_ptr,  # bf16, memory [m][k]
    b_ptr,  # bf16, memory [n][k]
    c_ptr,  # bf16, memory [m][n]
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tl.static_assert(64 % BLOCK_K == 0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    pid = tl.program_id(0)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = tl.minimum(tiles_m - first_m, GROUP_M)
    in_group = pid % (GROUP_M * tiles_n)
    tile_m = first_m + in_group % group_m
    tile_n = in_group // group_m

    offs_m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    in_m = offs_m < m
    in_n = offs_n < n
    # Masked loads below need no `other`: a row or column outside C reaches only elements that are not stored.
    a_ptrs = a_ptr + offs_k[None, :] + offs_m[:, None] * k
    b_ptrs = b_ptr + offs_k[:, None] + offs_n[None, :] * k

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(k // BLOCK_K):
        a = tl.load(a_ptrs, mask=in_m[:, None])
        b = tl.load(b_ptrs, mask=in_n[None, :])
        acc = tl.dot(a, b, acc=acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    tl.store(c_ptr + offs_m[:, None] * n + offs_n[None, :], acc.to(tl.bfloat16), mask=in_m[:, None] & in_n[None, :])


def options() -> dict[str, int]:
    """Return the launch options that the backend knows."""
    names = ("num_warps", "num_stages", *(AMD_ONLY if torch.version.hip else ()))
    return {name: TUNABLES[name] for name in names}


def custom_kernel(data: Data) -> torch.Tensor:
    """Write a @ b.T into `c` and return it."""
    a, b, c = data
    m, k = a.shape
    n = b.shape[0]
    grid = (triton.cdiv(m, TUNABLES["BLOCK_M"]) * triton.cdiv(n, TUNABLES["BLOCK_N"]),)
    gemm_kernel[grid](
        a,
        b,
        c,
        m,
        n,
        k,
        BLOCK_M=TUNABLES["BLOCK_M"],
        BLOCK_N=TUNABLES["BLOCK_N"],
        BLOCK_K=TUNABLES["BLOCK_K"],
        GROUP_M=TUNABLES["GROUP_M"],
        **options(),
    )
    return c
