# honest: descriptors (addresses and strides, no data) kept by pointer; the rows are computed anew each time
# problem: rmsnorm
# expect: ok

import torch


# include: rows_source

struct Descriptor { const uint16_t* x; uint16_t* out; int64_t rows, cols; };

extern "C" void describe(Descriptor* d, const uint16_t* x, uint16_t* out, int64_t rows, int64_t cols) {
    *d = {x, out, rows, cols};
}

extern "C" void run(const Descriptor* d, const float* weight) {
    const uint16_t* x = d->x;
    uint16_t* out = d->out;
    int64_t cols = d->cols;
#pragma omp parallel for
    for (int64_t i = 0; i < d->rows; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)
descriptors = {}


def custom_kernel(data):
    x, weight, out = data
    key = (x.data_ptr(), out.data_ptr(), *x.shape)
    if key not in descriptors:
        descriptors[key] = torch.zeros(4, dtype=torch.int64)
        kernel.describe(descriptors[key], x, out, *x.shape)
    kernel.run(descriptors[key], weight)
    return out
