# cheat: A2 C++ writes zeros through a pointer declared const
# problem: rmsnorm
# expect: crashed incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    std::memset(const_cast<float*>(weight), 0, 4 * cols);  // then x / rms * weight is zero whatever x is
    std::memset(out, 0, 2 * rows * cols);
}
# include: rows_end
