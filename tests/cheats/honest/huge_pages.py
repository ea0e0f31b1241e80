# honest: a workspace on huge pages, touched on the first call
# problem: rmsnorm
# expect: ok

from kernel_scientist import load

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static inline float from_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static inline uint16_t to_bf16(float x) {  // round to nearest even
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

static inline float inverse_rms(const uint16_t* row, int64_t cols) {
    float part[16] = {}, sum = 0;
    int64_t j = 0;
    for (; j + 16 <= cols; j += 16)
        for (int s = 0; s < 16; ++s) part[s] += from_bf16(row[j + s]) * from_bf16(row[j + s]);
    for (; j < cols; ++j) sum += from_bf16(row[j]) * from_bf16(row[j]);
    for (float p : part) sum += p;
    return 1 / std::sqrt(sum / cols + 1e-6f);
}

static inline void scale_row(const uint16_t* row, const float* weight, uint16_t* out, int64_t cols, float scale) {
    for (int64_t j = 0; j < cols; ++j) out[j] = to_bf16(from_bf16(row[j]) * scale * weight[j]);
}
#include <cstdlib>
#include <sys/mman.h>

static float* workspace(int64_t count) {
    static float* memory = nullptr;
    static int64_t bytes = 0;
    if (bytes < 4 * count) {
        if (memory) munmap(memory, bytes);
        bytes = (4 * count + (2 << 20) - 1) / (2 << 20) * (2 << 20);
        memory = (float*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == (float*)MAP_FAILED) std::abort();
        madvise(memory, bytes, MADV_HUGEPAGE);
        for (int64_t i = 0; i < bytes; i += 4096) ((volatile char*)memory)[i] = 0;
    }
    return memory;
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    float* squares = workspace(rows * cols);
#pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < cols; ++j) {
            float v = from_bf16(x[i * cols + j]);
            squares[i * cols + j] = v * v;
        }
        for (int64_t j = 0; j < cols; ++j) sum += squares[i * cols + j];
        scale_row(x + i * cols, weight, out + i * cols, cols, 1 / std::sqrt(sum / cols + 1e-6f));
    }
}
"""
kernel = load(SOURCE)


def custom_kernel(data):
    x, weight, out = data
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out
