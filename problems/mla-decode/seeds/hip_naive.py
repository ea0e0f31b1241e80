"""Latent attention, naive: the absorbed form, one workgroup per sequence and head, one position per wave at a time.

Naive: every head reads the whole cache, a sequence is not divided among workgroups, and there is no matrix instruction.
"""

import torch
from torch.utils.cpp_extension import load_inline

HOST = """
void decode(torch::Tensor q_nope, torch::Tensor q_rope, torch::Tensor w_k, torch::Tensor w_v, torch::Tensor cache,
            torch::Tensor out);
"""

DEVICE = r"""
#include <hip/hip_runtime.h>

constexpr int WAVE = 64, WAVES = 4, LANES = WAVE * WAVES;
constexpr int NOPE = 128, ROPE = 64, LATENT = 512, ROW = LATENT + ROPE;
constexpr int OF_LATENT = LATENT / WAVE, OF_ROW = ROW / WAVE;  // a lane's elements: number lane + WAVE * i
constexpr float SCALE = 0.0721687836f;                         // 1 / sqrt(NOPE + ROPE)

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

__global__ __launch_bounds__(LANES) void decode_kernel(
    const unsigned short* q_nope,  // [batch][heads][128]
    const unsigned short* q_rope,  // [batch][heads][64]
    const unsigned short* w_k,     // [heads][128][512]
    const unsigned short* w_v,     // likewise
    const unsigned short* cache,   // [batch][length][576]
    unsigned short* out,           // [batch][heads][128]
    int heads, int length) {
    __shared__ float query[ROW], latents[WAVES][LATENT], maxima[WAVES], totals[WAVES];
    int head = blockIdx.x, sequence = blockIdx.y, wave = threadIdx.x / WAVE, lane = threadIdx.x % WAVE;
    long row = (long)sequence * heads + head;
    q_nope += row * NOPE;
    q_rope += row * ROPE;
    w_k += (long)head * NOPE * LATENT;
    w_v += (long)head * NOPE * LATENT;
    cache += (long)sequence * length * ROW;

    // The query for the latents themselves.
    for (int c = threadIdx.x; c < LATENT; c += LANES) {
        float sum = 0;
        for (int d = 0; d < NOPE; ++d) sum += from_bf16(q_nope[d]) * from_bf16(w_k[d * LATENT + c]);
        query[c] = sum * SCALE;
    }
    if (threadIdx.x < ROPE) query[LATENT + threadIdx.x] = from_bf16(q_rope[threadIdx.x]) * SCALE;
    __syncthreads();

    // Each wave attends to every fourth position, with its own maximum and sums; a wave without positions keeps zeros.
    float mine[OF_ROW], sum[OF_LATENT] = {}, largest = -INFINITY, total = 0;
    for (int i = 0; i < OF_ROW; ++i) mine[i] = query[lane + WAVE * i];
    for (int j = wave; j < length; j += WAVES) {
        float key[OF_ROW], score = 0;
        for (int i = 0; i < OF_ROW; ++i) key[i] = from_bf16(cache[(long)j * ROW + lane + WAVE * i]);
        for (int i = 0; i < OF_ROW; ++i) score += mine[i] * key[i];
        score = sum_of_wave(score);
        float higher = fmaxf(largest, score);
        float factor = expf(largest - higher), weight = expf(score - higher);
        total = total * factor + weight;
        for (int i = 0; i < OF_LATENT; ++i) sum[i] = sum[i] * factor + weight * key[i];
        largest = higher;
    }

    // The waves' sums are brought to one maximum and added up. The first wave has a position, so it is finite.
    for (int i = 0; i < OF_LATENT; ++i) latents[wave][lane + WAVE * i] = sum[i];
    if (lane == 0) maxima[wave] = largest, totals[wave] = total;
    __syncthreads();
    float top = maxima[0], all = 0, factors[WAVES];
    for (int w = 1; w < WAVES; ++w) top = fmaxf(top, maxima[w]);
    for (int w = 0; w < WAVES; ++w) factors[w] = expf(maxima[w] - top), all += totals[w] * factors[w];
    for (int i = 0; i < OF_LATENT; ++i) {
        sum[i] = 0;
        for (int w = 0; w < WAVES; ++w) sum[i] += latents[w][lane + WAVE * i] * factors[w] / all;
    }

    // Every wave now has the weighted latent and applies a quarter of the head's value matrix to it.
    for (int d = wave; d < NOPE; d += WAVES) {
        float value = 0;
        for (int i = 0; i < OF_LATENT; ++i) value += sum[i] * from_bf16(w_v[d * LATENT + lane + WAVE * i]);
        value = sum_of_wave(value);
        if (lane == 0) out[row * NOPE + d] = to_bf16(value);
    }
}

void decode(torch::Tensor q_nope, torch::Tensor q_rope, torch::Tensor w_k, torch::Tensor w_v, torch::Tensor cache,
            torch::Tensor out) {
    int batch = out.size(0), heads = out.size(1), length = cache.size(1);
    decode_kernel<<<dim3(heads, batch), dim3(LANES)>>>(
        (const unsigned short*)q_nope.data_ptr(), (const unsigned short*)q_rope.data_ptr(),
        (const unsigned short*)w_k.data_ptr(), (const unsigned short*)w_v.data_ptr(),
        (const unsigned short*)cache.data_ptr(), (unsigned short*)out.data_ptr(), heads, length);
}
"""

module = load_inline(
    name="mla_decode_hip_naive",
    cpp_sources=[HOST],
    cuda_sources=[DEVICE],
    functions=["decode"],
    extra_cuda_cflags=["--offload-arch=gfx942", "-std=c++20", "-O3"],
)

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def custom_kernel(data: Data) -> torch.Tensor:
    """Write each head's attention into `out` and return it."""
    q_nope, q_rope, w_k, w_v, cache, out = data
    module.decode(q_nope, q_rope, w_k, w_v, cache, out)
    return out
