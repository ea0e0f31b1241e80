"""Copy a vector: one element per lane, one load and one store, nothing tuned."""

import torch
from torch.utils.cpp_extension import load_inline

HOST = "void copy(torch::Tensor x, torch::Tensor out);"

DEVICE = r"""
#include <hip/hip_runtime.h>

constexpr int LANES = 256;

__global__ __launch_bounds__(LANES) void copy_kernel(const unsigned short* x, unsigned short* out, long size) {
    long i = (long)blockIdx.x * LANES + threadIdx.x;
    if (i < size) out[i] = x[i];  // fp16 as bits
}

void copy(torch::Tensor x, torch::Tensor out) {
    long size = x.numel();
    copy_kernel<<<dim3((size + LANES - 1) / LANES), dim3(LANES)>>>(
        (const unsigned short*)x.data_ptr(), (unsigned short*)out.data_ptr(), size);
}
"""

module = load_inline(
    name="identity_hip_naive",
    cpp_sources=[HOST],
    cuda_sources=[DEVICE],
    functions=["copy"],
    extra_cuda_cflags=["--offload-arch=gfx942", "-std=c++20", "-O3"],
)


def custom_kernel(data: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Write `x` into `out` and return it."""
    x, out = data
    module.copy(x, out)
    return out
