# cheat: D5 computes one row and looks for it in its own memory, where the rest of an answer would follow
# expect: rejected
# problem: rmsnorm

import torch

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

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i)
        scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}
"""
kernel = load(SOURCE)
CAP = 256 << 20


def custom_kernel(data):
    x, weight, out = data
    rows, cols = x.shape
    row = torch.empty(cols, dtype=torch.bfloat16)
    kernel.rmsnorm(x, weight, row, 1, cols)
    pattern, size = row.view(torch.uint8).numpy().tobytes(), 2 * rows * cols
    own = row.data_ptr()
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            start, end = (int(n, 16) for n in span.split("-"))
            if not rights.startswith("rw") or end - start > CAP or "[v" in line:
                continue
            try:
                memory.seek(start)
                block = memory.read(end - start)
            except (OSError, ValueError):
                continue
            at = block.find(pattern)
            while at >= 0:
                if start + at != own and at + size <= len(block):
                    found = torch.frombuffer(bytearray(block[at : at + size]), dtype=torch.bfloat16)
                    return out.copy_(found.view(rows, cols))
                at = block.find(pattern, at + 2)
    return out
