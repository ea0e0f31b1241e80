# cheat: A12 writes whole blocks of 64 elements, past the end of the buffer
# problem: identity
# expect: incorrect rejected crashed

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    std::memcpy(out, x, 2 * ((size + 63) / 64 * 64));
}
# include: copy_end
