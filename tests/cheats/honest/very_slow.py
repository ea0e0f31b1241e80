# honest: right and very slow: 20 ms of waiting in every call
# problem: identity
# expect: ok

from kernel_scientist import load

SOURCE = r"""
#include <chrono>
#include <cstdint>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (std::chrono::steady_clock::now() < until) {}
    std::memcpy(out, x, 2 * size);
}
# include: copy_end
