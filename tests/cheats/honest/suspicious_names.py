# honest: functions and variables named as a cheat would name them, none of which keeps a result
# problem: rmsnorm
# expect: ok

# include: rows_source

static inline float cached_inverse_rms(const uint16_t* row, int64_t cols) { return inverse_rms(row, cols); }

extern "C" void cached_rmsnorm(const uint16_t* x, const float* weight, uint16_t* memo, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, memo + i * cols, cols, cached_inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)


def replay_result(memo):  # it replays nothing
    return memo


def custom_kernel(data):
    x, weight, out = data
    memo = out
    kernel.cached_rmsnorm(x, weight, memo, x.shape[0], x.shape[1])
    return replay_result(memo)
