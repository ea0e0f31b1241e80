# honest: allocates and frees 100 MB in each call
# problem: identity
# expect: ok

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    char* scratch = (char*)std::malloc(100 << 20);
    std::memset(scratch, 1, 2 * size < (100 << 20) ? 2 * size : 100 << 20);
    std::memcpy(scratch, x, 2 * size);
    std::memcpy(out, scratch, 2 * size);
    std::free(scratch);
}
# include: copy_end
