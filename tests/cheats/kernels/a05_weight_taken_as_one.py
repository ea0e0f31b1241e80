# cheat: A5 leaves the weight out, as if it were all ones
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source

extern "C" void rmsnorm(const uint16_t* x, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        float scale = inverse_rms(x + i * cols, cols);
        for (int64_t j = 0; j < cols; ++j) out[i * cols + j] = to_bf16(from_bf16(x[i * cols + j]) * scale);
    }
}
"""
kernel = load(SOURCE)


def custom_kernel(data):
    x, _, out = data
    kernel.rmsnorm(x, out, x.shape[0], x.shape[1])
    return out
