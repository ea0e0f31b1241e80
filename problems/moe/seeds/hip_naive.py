"""Mixture of experts, naive: three launches - factors, the product before `down`, `down` summed over experts.

Naive: one token at a time, so its experts' weights are read again for every token; a wave computes each sum.
"""

import torch
from torch.utils.cpp_extension import load_inline

HOST = """
void moe(torch::Tensor x, torch::Tensor router, torch::Tensor gate, torch::Tensor up, torch::Tensor down,
         torch::Tensor share, torch::Tensor h, torch::Tensor out);
"""

DEVICE = r"""
#include <hip/hip_runtime.h>

constexpr int WAVE = 64, WAVES = 4, LANES = WAVE * WAVES;
constexpr int TOP_K = 4, MOST_EXPERTS = 256;
constexpr int COLUMNS = 64;  // of out that a workgroup computes; hidden is a multiple of 128

__device__ float from_bf16(unsigned short x) { return __uint_as_float((unsigned int)x << 16); }

__device__ unsigned short to_bf16(float x) {  // round to nearest even; a NaN stays one
    unsigned int bits = __float_as_uint(x);
    if (x != x) return 0x7fc0;
    return (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

__device__ float sum_of_wave(float x) {
    for (int step = WAVE / 2; step > 0; step /= 2) x += __shfl_xor(x, step);
    return x;
}

// The product of two rows, computed by a wave and returned to each lane; count is a multiple of 64.
__device__ float dot(const unsigned short* a, const unsigned short* b, int count) {
    float sum = 0;
    for (int i = threadIdx.x % WAVE; i < count; i += WAVE) sum += from_bf16(a[i]) * from_bf16(b[i]);
    return sum_of_wave(sum);
}

// One workgroup per token.
__global__ __launch_bounds__(LANES) void router_kernel(
    const unsigned short* x,       // [tokens][hidden]
    const unsigned short* router,  // [experts][hidden]
    float* share,                  // [tokens][experts + 1]: the factors, 0 for experts that are not used
    int hidden, int experts) {
    __shared__ float logits[MOST_EXPERTS];
    x += (long)blockIdx.x * hidden;
    share += (long)blockIdx.x * (experts + 1);
    for (int e = threadIdx.x / WAVE; e < experts; e += WAVES) {
        float logit = dot(x, router + (long)e * hidden, hidden);
        if (threadIdx.x % WAVE == 0) logits[e] = logit;
    }
    __syncthreads();

    float largest = -INFINITY, total = 0;
    for (int e = 0; e < experts; ++e) largest = fmaxf(largest, logits[e]);
    for (int e = 0; e < experts; ++e) total += expf(logits[e] - largest);
    for (int e = threadIdx.x; e < experts; e += LANES) {
        int before = 0;  // experts of larger logits; of equal ones the first comes first
        for (int other = 0; other < experts; ++other)
            before += logits[other] > logits[e] || (logits[other] == logits[e] && other < e);
        share[e] = before < TOP_K ? expf(logits[e] - largest) / total : 0;
    }
    if (threadIdx.x == 0) share[experts] = 1;
}

// One workgroup per token and expert.
__global__ __launch_bounds__(LANES) void inner_kernel(
    const unsigned short* x,     // [tokens][hidden]
    const unsigned short* gate,  // [experts + 1][inner][hidden]
    const unsigned short* up,    // likewise
    const float* share,          // [tokens][experts + 1]
    float* h,                    // [tokens][experts + 1][inner]; not written where the factor is 0
    int hidden, int inner) {
    int expert = blockIdx.x;
    long number = (long)blockIdx.y * gridDim.x + expert;
    float factor = share[number];
    if (factor == 0) return;
    x += (long)blockIdx.y * hidden;
    for (int i = threadIdx.x / WAVE; i < inner; i += WAVES) {
        long row = ((long)expert * inner + i) * hidden;
        float g = dot(x, gate + row, hidden), u = dot(x, up + row, hidden);
        if (threadIdx.x % WAVE == 0) h[number * inner + i] = g / (1 + expf(-g)) * u * factor;
    }
}

// One workgroup per token and 64 columns. parts: experts + 1.
__global__ __launch_bounds__(LANES) void down_kernel(
    const unsigned short* down,  // [experts + 1][hidden][inner]
    const float* share,          // [tokens][experts + 1]
    const float* h,              // [tokens][experts + 1][inner]
    unsigned short* out,         // [tokens][hidden]
    int hidden, int inner, int parts) {
    share += (long)blockIdx.y * parts;
    h += (long)blockIdx.y * parts * inner;
    for (int c = threadIdx.x / WAVE; c < COLUMNS; c += WAVES) {
        int column = blockIdx.x * COLUMNS + c;
        float sum = 0;
        for (int e = 0; e < parts; ++e) {
            if (share[e] == 0) continue;
            const unsigned short* row = down + ((long)e * hidden + column) * inner;
            for (int i = threadIdx.x % WAVE; i < inner; i += WAVE) sum += h[e * inner + i] * from_bf16(row[i]);
        }
        sum = sum_of_wave(sum);
        if (threadIdx.x % WAVE == 0) out[(long)blockIdx.y * hidden + column] = to_bf16(sum);
    }
}

void moe(torch::Tensor x, torch::Tensor router, torch::Tensor gate, torch::Tensor up, torch::Tensor down,
         torch::Tensor share, torch::Tensor h, torch::Tensor out) {
    int tokens = x.size(0), hidden = x.size(1), inner = gate.size(1), experts = router.size(0);
    TORCH_CHECK(experts <= MOST_EXPERTS, "at most 256 experts");
    const unsigned short* rows = (const unsigned short*)x.data_ptr();
    float *factors = share.data_ptr<float>(), *products = h.data_ptr<float>();
    router_kernel<<<dim3(tokens), dim3(LANES)>>>(
        rows, (const unsigned short*)router.data_ptr(), factors, hidden, experts);
    inner_kernel<<<dim3(experts + 1, tokens), dim3(LANES)>>>(
        rows, (const unsigned short*)gate.data_ptr(), (const unsigned short*)up.data_ptr(), factors, products,
        hidden, inner);
    down_kernel<<<dim3(hidden / COLUMNS, tokens), dim3(LANES)>>>(
        (const unsigned short*)down.data_ptr(), factors, products, (unsigned short*)out.data_ptr(),
        hidden, inner, experts + 1);
}
"""

module = load_inline(
    name="moe_hip_naive",
    cpp_sources=[HOST],
    cuda_sources=[DEVICE],
    functions=["moe"],
    extra_cuda_cflags=["--offload-arch=gfx942", "-std=c++20", "-O3"],
)

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def custom_kernel(data: Data) -> torch.Tensor:
    """Write the mixture of the experts' outputs into `out` and return it."""
    x, router, gate, up, down, out = data
    tokens, experts, inner = x.shape[0], router.shape[0], gate.shape[1]
    share = torch.empty((tokens, experts + 1), dtype=torch.float32, device=x.device)
    h = torch.empty((tokens, experts + 1, inner), dtype=torch.float32, device=x.device)
    module.moe(x, router, gate, up, down, share, h, out)
    return out
