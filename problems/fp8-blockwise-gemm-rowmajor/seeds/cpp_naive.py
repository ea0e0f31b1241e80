"""Block-scaled fp8 GEMM on row-major operands, naive: the definition, one output element at a time, one thread."""

from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

// @begin decode
struct Table {  // e4m3fnuz: bias 8, no infinity, no negative zero
    float value[256];
    Table() {
        for (int x = 0; x < 256; ++x) {
            int exponent = (x >> 3) & 15, mantissa = x & 7;
            float v = exponent ? std::ldexp(1.0f + mantissa / 8.0f, exponent - 8) : std::ldexp(mantissa / 8.0f, -7);
            value[x] = x & 0x80 ? -v : v;
        }
        value[0x80] = NAN;
    }
};
static const Table table;

static float decode(uint8_t x) { return table.value[x]; }
// @end decode

static uint16_t to_bf16(float x) {  // round to nearest even
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

extern "C" void gemm(const uint8_t* a, const uint8_t* b, const float* a_scale, const float* b_scale, uint16_t* c,
                     int64_t m, int64_t n, int64_t k) {
    int64_t scales = k / 128;
    // @begin rows
    for (int64_t i = 0; i < m; ++i)
    // @end rows
        for (int64_t j = 0; j < n; ++j) {
            // @begin accumulator
            double sum = 0;
            // @end accumulator
            for (int64_t p = 0; p < k; ++p)
                sum += decode(a[i * k + p]) * a_scale[i * scales + p / 128] *
                       decode(b[j * k + p]) * b_scale[j / 128 * scales + p / 128];
            c[i * n + j] = to_bf16(sum);
        }
}
"""
FLAGS = []
kernel = load(SOURCE, flags=FLAGS)


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    kernel.gemm(a, b, a_scale, b_scale, c, a.shape[0], b.shape[0], a.shape[1])
    return c
