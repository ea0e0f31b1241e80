"""Identity, blocked: chunks copied by vectors, shared among threads when the copy is long enough to pay for them."""

from kernel_scientist import load

TUNABLES = {
    "VEC": 16,  # 16-bit elements in a vector
    "CHUNK": 16384,  # elements a thread takes at a time
    "UNROLL": 1,  # of the vector loop
    "PREFETCH": 0,  # vectors ahead; 0: none
    "SERIAL_BELOW": 65536,  # elements under which one thread does it all
    "THREADS": 0,  # 0: as many as the system grants
}
CHOICES = {
    "VEC": [8, 16, 32],
    "CHUNK": [4096, 16384, 65536, 262144],
    "UNROLL": [1, 2, 4, 8],
    "PREFETCH": [0, 4, 8, 16, 32],
    "SERIAL_BELOW": [16384, 65536, 262144, 1048576],
    "THREADS": [0, 1, 2, 4],
}
FLAGS = []

SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <omp.h>

constexpr int UNROLL_K = UNROLL;  // a pragma does not expand macros
typedef uint16_t vec __attribute__((vector_size(2 * VEC), aligned(2)));

static inline void chunk(const uint16_t* x, uint16_t* out, int64_t count) {
    int64_t i = 0;
    // @begin store
#pragma GCC unroll UNROLL_K
    for (; i + VEC <= count; i += VEC) {
        if (PREFETCH) __builtin_prefetch(x + i + PREFETCH * VEC);
        *(vec*)(out + i) = *(const vec*)(x + i);
    }
    // @end store
    for (; i < count; ++i) out[i] = x[i];
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int threads = size < SERIAL_BELOW ? 1 : THREADS ? THREADS : omp_get_max_threads();
    // @begin schedule
    #pragma omp parallel for schedule(static) num_threads(threads)
    // @end schedule
    for (int64_t i = 0; i < size; i += CHUNK) chunk(x + i, out + i, std::min<int64_t>(CHUNK, size - i));
}
"""
kernel = load(SOURCE, defines=TUNABLES, flags=FLAGS)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
