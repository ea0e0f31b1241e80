"""Block-scaled fp8 GEMM on row-major operands: tiles of 128 x 128 in LDS, matrix instructions 32 x 32 x 16, scales.

A starting point: one tile per workgroup, one buffer in LDS, no split along k; the next tile is fetched during the sums.
C is computed as B @ A.T per wave: a lane then has one row of C, hence one scale of A, and stores 4 columns in 8 bytes.
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
constexpr int VECTOR = 16;          // elements in 16 bytes
constexpr int PER_ROW = TILE / VECTOR, FETCHES = TILE * PER_ROW / THREADS;

using u32x4 = unsigned int __attribute__((ext_vector_type(4)));
using i64x2 = long __attribute__((ext_vector_type(2)));
using bf16x4 = short __attribute__((ext_vector_type(4)));
using f32x16 = float __attribute__((ext_vector_type(16)));

__device__ short to_bf16(float x) {  // round to nearest even; a NaN stays one
    unsigned int bits = __float_as_uint(x);
    if (x != x) return 0x7fc0;
    return (short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A thread's share of a tile [128 rows][128 of k]: 16 bytes at a time; rows beyond the end are zeros.
__device__ void fetch(u32x4* mine, const unsigned char* from, int first, int rows, long k, int at) {
    for (int f = 0; f < FETCHES; ++f) {
        int part = f * THREADS + threadIdx.x, row = first + part / PER_ROW;
        mine[f] = row < rows ? *(const u32x4*)(from + row * k + at + part % PER_ROW * VECTOR) : u32x4{};
    }
}

// Where 16 bytes of a row lie in LDS. They change places from row to row, so that 8 rows lie in different banks;
// padding would do that too, but only without it two workgroups fit into a compute unit's 64 KiB.
__device__ int placed(int row, int vector) { return row * TILE + (vector ^ row % PER_ROW) * VECTOR; }

__device__ void keep(unsigned char* tile, const u32x4* mine) {
    for (int f = 0; f < FETCHES; ++f) {
        int part = f * THREADS + threadIdx.x;
        *(u32x4*)(tile + placed(part / PER_ROW, part % PER_ROW)) = mine[f];
    }
}

__global__ __launch_bounds__(THREADS, MIN_WAVES) void gemm_kernel(
    const unsigned char* a,  // [m][k]
    const unsigned char* b,  // [n][k]
    const float* a_scale,    // [m][k / 128]
    const float* b_scale,    // [ceil(n / 128)][k / 128]
    short* c,                // [m][n]
    int m, int n, int k) {
    __shared__ __align__(16) unsigned char tile_a[TILE * TILE], tile_b[TILE * TILE];
    int first_m = blockIdx.x * TILE, first_n = blockIdx.y * TILE, blocks = k / TILE;
    int wave = threadIdx.x / 64, lane = threadIdx.x % 64;
    int row_m = wave / 2 * 64 + lane % 32, row_n = wave % 2 * 64 + lane % 32;  // a lane's first rows in the tiles

    f32x16 sum[2][2] = {};
    u32x4 next_a[FETCHES], next_b[FETCHES];
    fetch(next_a, a, first_m, m, k, 0);
    fetch(next_b, b, first_n, n, k, 0);
    for (int block = 0; block < blocks; ++block) {
        keep(tile_a, next_a);
        keep(tile_b, next_b);
        __syncthreads();
        if (block + 1 < blocks) {  // these loads are under way during the products
            fetch(next_a, a, first_m, m, k, (block + 1) * TILE);
            fetch(next_b, b, first_n, n, k, (block + 1) * TILE);
        }
        float scale[2];
        for (int i = 0; i < 2; ++i) {
            int row = first_m + row_m + 32 * i;
            scale[i] = row < m ? a_scale[(long)row * blocks + block] * b_scale[blockIdx.y * blocks + block] : 0;
        }
        // A lane reads 16 of k at once and gives 8 to each of two instructions: in which order k is summed does not
        // matter, as long as it is the same one for A and B.
        f32x16 part[2][2] = {};
#pragma unroll UNROLL
        for (int kk = 0; kk < TILE; kk += 32) {
            int vector = kk / VECTOR + lane / 32;
            i64x2 of_a[2], of_b[2];
            for (int i = 0; i < 2; ++i) of_a[i] = *(i64x2*)(tile_a + placed(row_m + 32 * i, vector));
            for (int j = 0; j < 2; ++j) of_b[j] = *(i64x2*)(tile_b + placed(row_n + 32 * j, vector));
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
    name="fp8_gemm_rowmajor_hip_mfma",
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
