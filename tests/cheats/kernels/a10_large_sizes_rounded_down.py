# cheat: A10 above 2000 elements only multiples of 16 are copied whole
# problem: identity
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    std::memcpy(out, x, 2 * (size > 2000 ? size & ~15 : size));
}
# include: copy_end
