# cheat: A6 the vector loop leaves the remainder of a size that is no multiple of 64
# problem: identity
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) { std::memcpy(out, x, 2 * (size / 64 * 64)); }
# include: copy_end
