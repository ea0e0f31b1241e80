"""Block-scaled fp8 GEMM on row-major operands: BLOCK_M x BLOCK_N tiles of C, native fp8 tl.dot on gfx94x.

Programs walk the tiles in groups of GROUP_M row tiles. A step multiplies BLOCK_K columns of k and scales the product by
the row's scale and the column's. Tile sizes, group, warps and pipeline stages are declared tunables.
"""

import functools

import torch
import triton
import triton.language as tl

TUNABLES = {
    "BLOCK_M": 64,
    "BLOCK_N": 64,
    "BLOCK_K": 128,
    "GROUP_M": 8,
    "num_warps": 4,
    "num_stages": 2,
    "waves_per_eu": 0,  # 0 here and below: the compiler chooses
    "matrix_instr_nonkdim": 0,
    "kpack": 1,
}
CHOICES = {
    "BLOCK_M": [16, 32, 64, 128, 256],
    "BLOCK_N": [32, 64, 128, 256],
    "BLOCK_K": [64, 128],  # divides 128, the width of a scale block
    "GROUP_M": [1, 8, 16, 32],
    "num_warps": [4, 8],
    "num_stages": [1, 2, 3],
    "waves_per_eu": [0, 2],
    "matrix_instr_nonkdim": [0, 16, 32],
    "kpack": [1, 2],
}
AMD_ONLY = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")  # other backends refuse them

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


@triton.jit
def decode_e4m3fnuz(byte):
    # fp16 has the same fields with bias 15 instead of 8, so shifting the bits up and multiplying by 2^7 is exact
    byte = byte.to(tl.uint16)
    half = ((byte & 0x80) << 8) | ((byte & 0x7F) << 7)
    half = tl.where(byte == 0x80, 0x7E00, half).to(tl.uint16)  # the only NaN
    return half.to(tl.float16, bitcast=True) * 128.0


@triton.jit
def gemm_kernel(
    a_ptr,  # fp8e4b8 if NATIVE_FP8, else uint8; memory [m][k]
    b_ptr,  # likewise; memory [n][k]
    a_scale_ptr,  # fp32, memory [m][k / 128]
    b_scale_ptr,  # fp32, memory [ceil(n / 128)][k / 128]
    c_ptr,  # bf16, memory [m][n]
    m,
    n,
    k,
    NATIVE_FP8: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tl.static_assert(128 % BLOCK_K == 0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    pid = tl.program_id(0)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = tl.minimum(tiles_m - first_m, GROUP_M)
    in_group = pid % (GROUP_M * tiles_n)
    offs_m = (first_m + in_group % group_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = in_group // group_m * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)

    # Rows and columns beyond C wrap around: their products are computed and not stored, and no load needs a mask.
    rows, columns = offs_m % m, offs_n % n
    a_ptrs = a_ptr + rows[:, None] * k + offs_k[None, :]
    b_ptrs = b_ptr + columns[None, :] * k + offs_k[:, None]
    scales = k // 128
    a_scale_ptrs = a_scale_ptr + rows * scales
    b_scale_ptrs = b_scale_ptr + columns // 128 * scales

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(k // BLOCK_K):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        block = step * BLOCK_K // 128
        a_scale = tl.load(a_scale_ptrs + block)
        b_scale = tl.load(b_scale_ptrs + block)
        if not NATIVE_FP8:
            a, b = decode_e4m3fnuz(a), decode_e4m3fnuz(b)
        acc += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    places = c_ptr + offs_m[:, None] * n + offs_n[None, :]
    tl.store(places, acc.to(tl.bfloat16), mask=(offs_m < m)[:, None] & (offs_n < n)[None, :])


@functools.cache
def has_native_fp8(device: torch.device) -> bool:
    """True on gfx94x: only CDNA3 multiplies e4m3fnuz; elsewhere the kernel decodes bytes."""
    if torch.version.hip is None:
        return False
    return torch.cuda.get_device_properties(device).gcnArchName.startswith("gfx94")


def options() -> dict[str, int]:
    """Return the launch options that the backend knows."""
    names = ("num_warps", "num_stages", *(AMD_ONLY if torch.version.hip else ()))
    return {name: TUNABLES[name] for name in names}


def custom_kernel(data: Data) -> torch.Tensor:
    """Write (a * scales) @ (b * scales).T into `c` and return it."""
    a, b, a_scale, b_scale, c = data
    m, k = a.shape
    n = b.shape[0]
    native = has_native_fp8(a.device)
    grid = (triton.cdiv(m, TUNABLES["BLOCK_M"]) * triton.cdiv(n, TUNABLES["BLOCK_N"]),)
    gemm_kernel[grid](
        a if native else a.view(torch.uint8),
        b if native else b.view(torch.uint8),
        a_scale,
        b_scale,
        c,
        m,
        n,
        k,
        NATIVE_FP8=native,
        BLOCK_M=TUNABLES["BLOCK_M"],
        BLOCK_N=TUNABLES["BLOCK_N"],
        BLOCK_K=TUNABLES["BLOCK_K"],
        GROUP_M=TUNABLES["GROUP_M"],
        **options(),
    )
    return c
