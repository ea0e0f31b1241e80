# honest: std::thread for half of the rows, joined before the return
# problem: rmsnorm
# expect: ok

# include: rows_source
#include <thread>

static void part(const uint16_t* x, const float* weight, uint16_t* out, int64_t from, int64_t to, int64_t cols) {
    for (int64_t i = from; i < to; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    std::thread other(part, x, weight, out, rows / 2, rows, cols);
    part(x, weight, out, 0, rows / 2, cols);
    other.join();
}
# include: rows_end
