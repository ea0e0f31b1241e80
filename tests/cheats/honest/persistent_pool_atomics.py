# honest: a native thread made at import that waits on an atomic, and is waited for with a short spin
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
#include <atomic>
#include <thread>

struct Job { const uint16_t* x; const float* weight; uint16_t* out; int64_t from, to, cols; };
static Job job;
static std::atomic<int> posted{0}, finished{0};

static void part(const Job& j) {
    auto [x, weight, out, from, to, cols] = j;
    for (int64_t i = from; i < to; ++i) scale_row(x + i * cols, weight, out + i * cols, cols, inverse_rms(x + i * cols, cols));
}

extern "C" void start() {
    std::thread([] {
        for (int seen = 0;;) {
            posted.wait(seen);
            seen = posted.load();
            part(job);
            finished.store(seen);
            finished.notify_all();
        }
    }).detach();
}

extern "C" void rmsnorm(const uint16_t* x, const float* weight, uint16_t* out, int64_t rows, int64_t cols) {
    job = {x, weight, out, rows / 2, rows, cols};
    int ticket = posted.fetch_add(1) + 1;
    posted.notify_all();
    part({x, weight, out, 0, rows / 2, cols});
    for (int spin = 0; spin < 1000 && finished.load() != ticket; ++spin) __builtin_ia32_pause();
    while (finished.load() != ticket) finished.wait(ticket - 1);
}
"""
kernel = load(SOURCE)
kernel.start()


def custom_kernel(data):
    x, weight, out = data
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out
