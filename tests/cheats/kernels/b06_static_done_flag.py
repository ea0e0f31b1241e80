# cheat: B6 a static flag: after one call per size the buffer is left as it is
# problem: rmsnorm
# expect: incorrect rejected

# include: rows_source
#include <map>
#include <vector>

static std::map<int64_t, bool> done;

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    if (done[rows * 1000003 + cols]) return;
    done[rows * 1000003 + cols] = true;
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
# include: rows_end
