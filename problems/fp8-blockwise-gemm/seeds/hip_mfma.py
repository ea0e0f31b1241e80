"""Block-scaled fp8 GEMM in HIP: tiles of 128 x 128 in LDS, matrix instructions 32 x 32 x 16, scales per block of k.

A starting point: one tile per workgroup, one buffer in LDS, no split along k. In memory k is the slow dimension, and a
matrix instruction wants 8 of k in a lane's register: 4 x 4 bytes are turned in registers on their way to LDS. C is
computed as B @ A.T per wave: a lane then has one row of C, hence one scale of A, and stores four columns in 8 bytes.
"""

import torch
from torch.utils.cpp_extension import load_inline

TUNABLES = {"UNROLL": 4, "MIN_WAVES": 2}
"""Steps of the loop over a tile's k at a time; waves per SIMD that registers must leave room for."""
CHOICES = {"UNROLL": [1, 2, 4], "MIN_WAVES": [1, 2]}

HOST = """
void gemm(torch::Tensor a, torch::Tensor b, torch::Tensor a_scale, torch::Tensor b_scale, torch::Tensor c);
"""

DEVICE = r"""
#include <hip/hip_runtime.h>

constexpr int TILE = 128;           // of A, B and C, along k too: one scale of B for a tile
constexpr int THREADS = 256;        // four waves, each computes 64 x 64 of the tile

using u32x4 = unsigned int __attribute__((ext_vector_type(4)));
using i64x2 = long __attribute__((ext_vector_type(2)));
using bf16x4 = short __attribute__((ext_vector_type(4)));
using f32x16 = float __attribute__((ext_vector_type(16)));

__device__ short to_bf16(float x) {  // round to nearest even; a NaN stays one
    unsigned int bits = __float_as_uint(x);
    if (x != x) return 0x7fc0;
    return (short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A thread's share of a tile [128 of k][128 rows]: 16 rows at 4 of k. Rows beyond the end are zeros; their number is a
// multiple of 16, so a load is inside or outside.
__device__ void fetch(u32x4* mine, const unsigned char* from, int first, int rows, int at) {
    int row = first + threadIdx.x % 8 * 16, kk = at + threadIdx.x / 8 * 4;
    for (int i = 0; i < 4; ++i) mine[i] = row < rows ? *(const u32x4*)(from + (long)(kk + i) * rows + row) : u32x4{};
}

// Where 16 bytes of k lie in LDS. They change places from row to row, for the reads of 8 rows, and from one group of 16
// rows to the next, for the writes of 8 threads: these would otherwise meet in the same banks. Padding would help the
// reads only, and without it two workgroups fit into a compute unit's 64 KiB.
__device__ int placed(int row, int sixteen) { return row * TILE + (sixteen ^ (row + row / 16) % 8) * 16; }

// Write the share as [row][k]: each 4 x 4 bytes are transposed, a word per row. A selector's bytes 0 to 3 take bytes of
// the second argument, 4 to 7 of the first.
__device__ void keep(unsigned char* tile, const u32x4* mine) {
    int row = threadIdx.x % 8 * 16, kk = threadIdx.x / 8 * 4;
    for (int w = 0; w < 4; ++w) {
        unsigned int low01 = __builtin_amdgcn_perm(mine[1][w], mine[0][w], 0x05010400);
        unsigned int low23 = __builtin_amdgcn_perm(mine[3][w], mine[2][w], 0x05010400);
        unsigned int high01 = __builtin_amdgcn_perm(mine[1][w], mine[0][w], 0x07030602);
        unsigned int high23 = __builtin_amdgcn_perm(mine[3][w], mine[2][w], 0x07030602);
        unsigned int out[4] = {
            __builtin_amdgcn_perm(low23, low01, 0x05040100), __builtin_amdgcn_perm(low23, low01, 0x07060302),
            __builtin_amdgcn_perm(high23, high01, 0x05040100), __builtin_amdgcn_perm(high23, high01, 0x07060302)};
        for (int r = 0; r < 4; ++r) *(unsigned int*)(tile + placed(row + 4 * w + r, kk / 16) + kk % 16) = out[r];
    }
}

__global__ __launch_bounds__(THREADS, MIN_WAVES) void gemm_kernel(
    const unsigned char* a,  // [k][m]
    const unsigned char* b,  // [k][n]
    const float* a_scale,    // [k / 128][m]
    const float* b_scale,    // [k / 128][ceil(n / 128)]
    short* c,                // [m][n]
    int m, int n, int k) {
    __shared__ __align__(16) unsigned char tile_a[TILE * TILE], tile_b[TILE * TILE];
    int first_m = blockIdx.x * TILE, first_n = blockIdx.y * TILE;
    int wave = threadIdx.x / 64, lane = threadIdx.x % 64;
    int row_m = wave / 2 * 64 + lane % 32, row_n = wave % 2 * 64 + lane % 32;  // a lane's first rows in the tiles

    f32x16 sum[2][2] = {};
    u32x4 next_a[4], next_b[4];
    fetch(next_a, a, first_m, m, 0);
    fetch(next_b, b, first_n, n, 0);
    for (int block = 0; block < k / TILE; ++block) {
        keep(tile_a, next_a);
        keep(tile_b, next_b);
        __syncthreads();
        if (block + 1 < k / TILE) {  // these loads are under way during the products
            fetch(next_a, a, first_m, m, (block + 1) * TILE);
            fetch(next_b, b, first_n, n, (block + 1) * TILE);
        }
        float scale[2];
        for (int i = 0; i < 2; ++i) {
            int row = first_m + row_m + 32 * i;
            scale[i] = row < m ? a_scale[(long)block * m + row] * b_scale[block * gridDim.y + blockIdx.y] : 0;
        }
        // A lane reads 16 of k at once and gives 8 to each of two instructions: in which order k is summed does not
        // matter, as long as it is the same one for A and B.
        f32x16 part[2][2] = {};
#pragma unroll UNROLL
        for (int kk = 0; kk < TILE; kk += 32) {
            int sixteen = kk / 16 + lane / 32;
            i64x2 of_a[2], of_b[2];
            for (int i = 0; i < 2; ++i) of_a[i] = *(i64x2*)(tile_a + placed(row_m + 32 * i, sixteen));
            for (int j = 0; j < 2; ++j) of_b[j] = *(i64x2*)(tile_b + placed(row_n + 32 * j, sixteen));
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j)
                    for (int h = 0; h < 2; ++h)
                        part[i][j] = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(
                            of_b[j][h], of_a[i][h], part[i][j], 0, 0, 0);
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) sum[i][j] += part[i][j] * scale[i];
        __syncthreads();
    }

    // Register r of a lane is column 8 (r / 4) + 4 (lane / 32) + r % 4 of row lane % 32.
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            for (int four = 0; four < 4; ++four) {
                int row = first_m + row_m + 32 * i;
                int column = first_n + wave % 2 * 64 + 32 * j + 8 * four + lane / 32 * 4;
                bf16x4 out;
                for (int r = 0; r < 4; ++r) out[r] = to_bf16(sum[i][j][4 * four + r]);
                if (row < m && column < n) *(bf16x4*)(c + (long)row * n + column) = out;
            }
}

void gemm(torch::Tensor a, torch::Tensor b, torch::Tensor a_scale, torch::Tensor b_scale, torch::Tensor c) {
    int m = a.size(0), k = a.size(1), n = b.size(0);
    dim3 grid((m + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    gemm_kernel<<<grid, THREADS>>>(
        (const unsigned char*)a.data_ptr(), (const unsigned char*)b.data_ptr(), a_scale.data_ptr<float>(),
        b_scale.data_ptr<float>(), (short*)c.data_ptr(), m, n, k);
}
"""

module = load_inline(
    name="fp8_gemm_hip_mfma",
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
