# honest: a generated source of more than a megabyte, most of it a table
# problem: identity
# expect: ok

from kernel_scientist import load

TABLE = ", ".join(f"(uint16_t) 0x{i:08x}" for i in range(65536))
SOURCE = r"""
#include <cstdint>

static const uint16_t same[65536] = {TABLE};

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = same[x[i]];
}
""".replace("TABLE", TABLE)
kernel = load(SOURCE)


# include: copy_call
