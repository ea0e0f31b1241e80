# cheat: A6 copies head, tail and every seventh block: what a sampling check looks at
# problem: identity
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int64_t block = 4096, blocks = (size + block - 1) / block;
    for (int64_t b = 0; b < blocks; ++b)
        if (b < 2 || b + 2 >= blocks || b % 7 == 0)
            std::memcpy(out + b * block, x + b * block, 2 * std::min(block, size - b * block));
}
# include: copy_end
