# honest: functools.lru_cache of compiled libraries, by vector width, filled at import
# problem: identity
# expect: ok

import functools

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

typedef uint16_t vec __attribute__((vector_size(2 * VEC), aligned(2)));

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int64_t i = 0;
    for (; i + VEC <= size; i += VEC) *(vec*)(out + i) = *(const vec*)(x + i);
    for (; i < size; ++i) out[i] = x[i];
}
"""


@functools.lru_cache(maxsize=None)
def library(width):
    return load(SOURCE, defines={"VEC": width})


for width in (8, 32):
    library(width)


def custom_kernel(data):
    x, out = data
    library(8 if x.numel() < 4096 else 32).copy(x, out, x.numel())
    return out
