"""Block-scaled fp8 GEMM for any processor: operands decoded and scaled to fp32, then rows of C.

The same work on one thread, and on as many as there are cores by OpenMP, by std::thread and by a pool of its own.
"""

from kernel_scientist import load

THREADING = "one"
SOURCE = r"""
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

static int cores() {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
}
using Part = std::function<void(int part, int parts)>;

#if defined(BY_OPENMP)
static void run(const Part& part) {
#pragma omp parallel
    part(omp_get_thread_num(), omp_get_num_threads());
}
#elif defined(BY_STD_THREAD)
static void run(const Part& part) {
    const int parts = cores();
    std::vector<std::thread> others;
    for (int p = 1; p < parts; ++p) others.emplace_back(part, p, parts);
    part(0, parts);
    for (auto& other : others) other.join();
}
#elif defined(BY_POOL)
struct Pool {
    std::atomic<int> turn{0}, left{0};
    const Part* part = nullptr;
    int parts = cores();
    Pool() {
        for (int p = 1; p < parts; ++p)
            std::thread([this, p] {
                for (int seen = 0;; ++seen) {
                    turn.wait(seen);
                    (*part)(p, parts);
                    left.fetch_sub(1);
                }
            }).detach();
    }
};
static void run(const Part& part) {
    static Pool& pool = *new Pool;
    pool.part = &part;
    pool.left = pool.parts - 1;
    pool.turn.fetch_add(1);
    pool.turn.notify_all();
    part(0, pool.parts);
    while (pool.left.load()) std::this_thread::yield();
}
#else
static void run(const Part& part) { part(0, 1); }
#endif

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

static uint16_t to_bf16(float x) {  // round to nearest even
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

static std::vector<float> left, right;  // decoded and scaled: [k][m], [k][n]

extern "C" void gemm(const uint8_t* a, const uint8_t* b, const float* a_scale, const float* b_scale, uint16_t* c,
                     int64_t m, int64_t n, int64_t k) {
    const int64_t blocks_n = (n + 127) / 128;
    left.resize(m * k), right.resize(n * k);
    run([&](int part, int parts) {
        for (int64_t p = part; p < k; p += parts) {
            const float *scale_a = a_scale + p / 128 * m, *scale_b = b_scale + p / 128 * blocks_n;
            for (int64_t i = 0; i < m; ++i) left[p * m + i] = table.value[a[p * m + i]] * scale_a[i];
            for (int64_t j = 0; j < n; ++j) right[p * n + j] = table.value[b[p * n + j]] * scale_b[j / 128];
        }
    });
    run([&](int part, int parts) {
        std::vector<float> sums(n);
        for (int64_t i = part; i < m; i += parts) {
            std::fill(sums.begin(), sums.end(), 0.0f);
            for (int64_t p = 0; p < k; ++p) {
                const float x = left[p * m + i], *row = right.data() + p * n;
                for (int64_t j = 0; j < n; ++j) sums[j] += x * row[j];
            }
            for (int64_t j = 0; j < n; ++j) c[i * n + j] = to_bf16(sums[j]);
        }
    });
}
"""
kernel = load(SOURCE, flags=[f"-DBY_{THREADING.upper()}"])


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    kernel.gemm(a, b, a_scale, b_scale, c, a.shape[0], b.shape[0], a.shape[1])
    return c
