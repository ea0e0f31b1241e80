"""bf16 GEMM, naive: the definition, one output element at a time, one thread."""

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

static float from_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static uint16_t to_bf16(float x) {  // round to nearest even
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

extern "C" void gemm(const uint16_t* a, const uint16_t* b, uint16_t* c, int64_t m, int64_t n, int64_t k) {
    // @begin rows
    for (int64_t i = 0; i < m; ++i)
    // @end rows
        for (int64_t j = 0; j < n; ++j) {
            // @begin accumulator
            double sum = 0;
            // @end accumulator
            for (int64_t p = 0; p < k; ++p) sum += from_bf16(a[i * k + p]) * from_bf16(b[j * k + p]);
            c[i * n + j] = to_bf16(sum);
        }
}
"""
FLAGS = []
kernel = load(SOURCE, flags=FLAGS)


def custom_kernel(data):
    a, b, c = data
    kernel.gemm(a, b, c, a.shape[0], b.shape[0], a.shape[1])
    return c
