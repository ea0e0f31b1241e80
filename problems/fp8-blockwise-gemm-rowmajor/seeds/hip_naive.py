"""Block-scaled fp8 GEMM on row-major operands, naive: one element of C per lane, the hardware's conversions, fp32 sums.

Naive: every operand is read from memory again for every product; no LDS, no matrix instruction.
"""

import torch
from torch.utils.cpp_extension import load_inline

TUNABLES = {"TILE_M": 4}
"""Rows of C that a workgroup computes, one a wave."""
CHOICES = {"TILE_M": [1, 2, 4, 8, 16]}

HOST = """
void gemm(torch::Tensor a, torch::Tensor b, torch::Tensor a_scale, torch::Tensor b_scale, torch::Tensor c);
"""

DEVICE = r"""
#include <hip/hip_runtime.h>

constexpr int TILE_N = 64;  // lanes of a wave lie along n: they write neighbouring elements of c and share a row of a
constexpr int SCALED = 128;

__device__ float from_fp8(unsigned int byte) { return __builtin_amdgcn_cvt_f32_fp8(byte, 0); }  // e4m3fnuz on gfx942

__device__ unsigned short to_bf16(float x) {  // round to nearest even; a NaN stays one
    unsigned int bits = __float_as_uint(x);
    if (x != x) return 0x7fc0;
    return (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

__global__ __launch_bounds__(TILE_N * TILE_M) void gemm_kernel(
    const unsigned char* a,  // [m][k]
    const unsigned char* b,  // [n][k]
    const float* a_scale,    // [m][k / 128]
    const float* b_scale,    // [ceil(n / 128)][k / 128]
    unsigned short* c,       // [m][n]
    int m, int n, int k) {
    int j = blockIdx.x * TILE_N + threadIdx.x;
    int i = blockIdx.y * TILE_M + threadIdx.y;
    if (i >= m || j >= n) return;
    int blocks = k / SCALED;
    float sum = 0;
    for (int block = 0; block < blocks; ++block) {
        float part = 0;
        for (int kk = block * SCALED; kk < (block + 1) * SCALED; ++kk)
            part += from_fp8(a[(long)i * k + kk]) * from_fp8(b[(long)j * k + kk]);
        sum += part * a_scale[(long)i * blocks + block] * b_scale[j / SCALED * blocks + block];
    }
    c[(long)i * n + j] = to_bf16(sum);
}

void gemm(torch::Tensor a, torch::Tensor b, torch::Tensor a_scale, torch::Tensor b_scale, torch::Tensor c) {
    int m = a.size(0), k = a.size(1), n = b.size(0);
    dim3 grid((n + TILE_N - 1) / TILE_N, (m + TILE_M - 1) / TILE_M), block(TILE_N, TILE_M);
    gemm_kernel<<<grid, block>>>(
        (const unsigned char*)a.data_ptr(), (const unsigned char*)b.data_ptr(), a_scale.data_ptr<float>(),
        b_scale.data_ptr<float>(), (unsigned short*)c.data_ptr(), m, n, k);
}
"""

module = load_inline(
    name="fp8_gemm_rowmajor_hip_naive",
    cpp_sources=[HOST],
    cuda_sources=[DEVICE],
    functions=["gemm"],
    extra_cuda_cflags=[
        "--offload-arch=gfx942",
        "-std=c++20",
        "-O3",
        *(f"-D{name}={n}" for name, n in TUNABLES.items()),
    ],
)

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def custom_kernel(data: Data) -> torch.Tensor:
    """Write (a * scales) @ (b * scales).T into `c` and return it."""
    a, b, a_scale, b_scale, c = data
    module.gemm(a, b, a_scale, b_scale, c)
    return c
