"""bf16 GEMM in HIP: tiles of 128 x 128 in LDS, matrix instructions 32 x 32 x 8, the next tile fetched during the sums.

A starting point: one tile per workgroup, one buffer in LDS, no split along k. C is computed as B @ A.T per wave: a lane
then holds runs of four neighbouring columns of C, which it stores in 8 bytes.
"""

import torch
from torch.utils.cpp_extension import load_inline

TUNABLES = {"TILE_K": 64, "GROUP": 8, "MIN_WAVES": 2}
"""Of k in LDS; tiles of A that share a tile of B in the L2; waves per SIMD that registers must leave room for."""
CHOICES = {"TILE_K": [32, 64], "GROUP": [1, 4, 8, 16], "MIN_WAVES": [1, 2]}

HOST = "void gemm(torch::Tensor a, torch::Tensor b, torch::Tensor c);"

DEVICE = r"""
#include <hip/hip_runtime.h>

constexpr int TILE = 128;                // of A, B and C; TILE_K along k, which is a multiple of 64
constexpr int THREADS = 256;             // four waves, each computes 64 x 64 of the tile
constexpr int VECTOR = 8;                // elements in 16 bytes
constexpr int PER_ROW = TILE_K / VECTOR, FETCHES = TILE * PER_ROW / THREADS;

using bf16x4 = short __attribute__((ext_vector_type(4)));
using bf16x8 = short __attribute__((ext_vector_type(8)));
using f32x16 = float __attribute__((ext_vector_type(16)));

__device__ short to_bf16(float x) {  // round to nearest even; a NaN stays one
    unsigned int bits = __float_as_uint(x);
    if (x != x) return 0x7fc0;
    return (short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Where 16 bytes of a row lie in LDS. They change places from row to row, so that 8 rows lie in different banks;
// padding would do that too, but only without it two workgroups fit into a compute unit's 64 KiB.
__device__ int placed(int row, int vector) { return row * TILE_K + (vector ^ row % PER_ROW) * VECTOR; }

// A thread's share of a tile [128 rows][64 of k]: 16 bytes at a time; rows beyond the end are zeros.
__device__ void fetch(bf16x8* mine, const short* from, int first, int rows, long k, long at) {
    for (int f = 0; f < FETCHES; ++f) {
        int part = f * THREADS + threadIdx.x, row = first + part / PER_ROW;
        mine[f] = row < rows ? *(const bf16x8*)(from + row * k + at + part % PER_ROW * VECTOR) : bf16x8{};
    }
}

__device__ void keep(short* tile, const bf16x8* mine) {
    for (int f = 0; f < FETCHES; ++f) {
        int part = f * THREADS + threadIdx.x;
        *(bf16x8*)(tile + placed(part / PER_ROW, part % PER_ROW)) = mine[f];
    }
}

__global__ __launch_bounds__(THREADS, MIN_WAVES) void gemm_kernel(
    const short* a,  // [m][k]
    const short* b,  // [n][k]
    short* c,        // [m][n]
    int m, int n, int k) {
    __shared__ __align__(16) short tile_a[TILE * TILE_K], tile_b[TILE * TILE_K];
    int tiles_m = (m + TILE - 1) / TILE, tiles_n = (n + TILE - 1) / TILE;
    int group = blockIdx.x / (GROUP * tiles_n) * GROUP, high = min(tiles_m - group, GROUP);
    int within = blockIdx.x % (GROUP * tiles_n);
    int first_m = (group + within % high) * TILE, first_n = within / high * TILE;

    int wave = threadIdx.x / 64, lane = threadIdx.x % 64;
    int row_m = wave / 2 * 64 + lane % 32, row_n = wave % 2 * 64 + lane % 32;  // a lane's first rows in the tiles

    f32x16 sum[2][2] = {};
    bf16x8 next_a[FETCHES], next_b[FETCHES];
    fetch(next_a, a, first_m, m, k, 0);
    fetch(next_b, b, first_n, n, k, 0);
    for (int at = 0; at < k; at += TILE_K) {
        keep(tile_a, next_a);
        keep(tile_b, next_b);
        __syncthreads();
        if (at + TILE_K < k) {  // these loads are under way during the products
            fetch(next_a, a, first_m, m, k, at + TILE_K);
            fetch(next_b, b, first_n, n, k, at + TILE_K);
        }
        // A lane reads 8 of k at once and gives 4 to each of two instructions: in which order k is summed does not
        // matter, as long as it is the same one for A and B.
        for (int kk = 0; kk < TILE_K; kk += 16) {
            int vector = kk / VECTOR + lane / 32;
            bf16x8 of_a[2], of_b[2];
            for (int i = 0; i < 2; ++i) of_a[i] = *(bf16x8*)(tile_a + placed(row_m + 32 * i, vector));
            for (int j = 0; j < 2; ++j) of_b[j] = *(bf16x8*)(tile_b + placed(row_n + 32 * j, vector));
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) {
                    sum[i][j] = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(of_b[j].lo, of_a[i].lo, sum[i][j], 0, 0, 0);
                    sum[i][j] = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(of_b[j].hi, of_a[i].hi, sum[i][j], 0, 0, 0);
                }
        }
        __syncthreads();
    }

    // Register r of a lane is column 8 (r / 4) + 4 (lane / 32) + r % 4 of row lane % 32. n is a multiple of 16.
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

void gemm(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
    int m = a.size(0), k = a.size(1), n = b.size(0);
    int tiles = ((m + TILE - 1) / TILE) * ((n + TILE - 1) / TILE);
    gemm_kernel<<<tiles, THREADS>>>(
        (const short*)a.data_ptr(), (const short*)b.data_ptr(), (short*)c.data_ptr(), m, n, k);
}
"""

module = load_inline(
    name="bf16_gemm_hip_mfma",
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

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def custom_kernel(data: Data) -> torch.Tensor:
    """Write a @ b.T into `c` and return it."""
    a, b, c = data
    module.gemm(a, b, c)
    return c
