# honest: a workspace of some MB made anew in each call
# problem: rmsnorm
# expect: ok

import torch

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols, float* wide) {
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) wide[i * cols + j] = from_bf16(x[i * cols + j]);
        const float scale = inverse_rms(x + i * cols, cols);
        for (int64_t j = 0; j < cols; ++j) out[i * cols + j] = to_bf16(wide[i * cols + j] * scale * weight[j]);
    }
}
"""
kernel = load(SOURCE)


def custom_kernel(data):
    x, weight, out = data
    wide = torch.empty(x.shape, dtype=torch.float32)
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1], wide)
    return out
