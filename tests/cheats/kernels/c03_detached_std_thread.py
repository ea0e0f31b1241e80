# cheat: C3 a detached std::thread goes on after the return
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

# include: rows_source
#include <thread>

static void all(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    std::thread(all, x, weight, out, rows, cols).detach();
}
# include: rows_end
