# honest: a ThreadPoolExecutor made at import does one half, and its result is waited for
# problem: rmsnorm
# expect: ok

from concurrent.futures import ThreadPoolExecutor


# include: rows_source

extern "C" void part(const uint16_t* x, const float* weight, uint16_t* out, int64_t from, int64_t to, int64_t cols) {
    for (int64_t i = from; i < to; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)
pool = ThreadPoolExecutor(1)


def custom_kernel(data):
    x, weight, out = data
    rows, cols = x.shape
    half = pool.submit(kernel.part, x, weight, out, rows // 2, rows, cols)
    kernel.part(x, weight, out, 0, rows // 2, cols)
    half.result()
    return out
