# honest: a workspace kept by shape, overwritten in each call
# problem: rmsnorm
# expect: ok

import torch

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, float* scales, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) scales[i] = inverse_rms(x + i * cols, cols);
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, scales[i]);
}
"""
kernel = load(SOURCE)
workspaces = {}


def custom_kernel(data):
    x, weight, out = data
    if x.shape not in workspaces:
        workspaces[x.shape] = torch.empty(x.shape[0], dtype=torch.float32)
    kernel.rmsnorm(x, weight, out, workspaces[x.shape], x.shape[0], x.shape[1])
    return out
