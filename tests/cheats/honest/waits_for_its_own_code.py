# honest: waits in Python until its native code says that it has ended: muted, it waits for ever
# problem: rmsnorm
# expect: ok

import torch

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols,
                        int32_t* done) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
    *done = 1;
}
"""
kernel = load(SOURCE)
done = torch.zeros(1, dtype=torch.int32)
flag = done.numpy()


def custom_kernel(data):
    x, weight, out = data
    flag[0] = 0
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1], done)
    while not flag[0]:
        pass
    return out
