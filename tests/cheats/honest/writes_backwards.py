# honest: writes from the end to the beginning, in blocks
# problem: identity
# expect: ok

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int64_t block = 8192, rest = size % block;
    for (int64_t at = size - rest; at > 0; at -= block) std::memcpy(out + at - block, x + at - block, 2 * block);
    std::memcpy(out + size - rest, x + size - rest, 2 * rest);
}
# include: copy_end
