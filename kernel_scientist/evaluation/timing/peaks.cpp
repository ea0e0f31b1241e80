// Microkernels that measure a machine's peaks: all threads run the same loop in short windows for a second. A thread's rate
// is that of the window below which nine tenths are, because interruptions only take time; the result is their sum.
//
// measure(what, threads, bytes, part): operations or bytes per ns of all threads together, or GHz; -1: no such unit. Each
// thread has `bytes` of its own, of which a window uses the next `part`.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

constexpr int64_t LONGEST_NS = 1000000000;

int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

#if defined(__AVX512F__)
constexpr int VECTOR = 64;
#elif defined(__AVX__)
constexpr int VECTOR = 32;
#else
constexpr int VECTOR = 16;
#endif
typedef float Floats __attribute__((vector_size(VECTOR)));
typedef int64_t Words __attribute__((vector_size(VECTOR)));

#if defined(__x86_64__)
#define HOLD(v) asm volatile("" : "+v"(v))
#else
#define HOLD(v) asm volatile("" : "+w"(v))
#endif

// A loop returns the operations (or bytes) that it did.
using Loop = double (*)(char* own, int64_t bytes);

double fp32(char*, int64_t) {
    constexpr int CHAINS = VECTOR == 64 ? 24 : 12, TIMES = 5000;
    Floats sums[CHAINS] = {}, a, b;
    for (int i = 0; i < VECTOR / 4; ++i) a[i] = 0.5f, b[i] = 0.25f;
#pragma GCC unroll 32
    for (int c = 0; c < CHAINS; ++c) HOLD(sums[c]);  // else the compiler sees that all chains are one
    for (int t = 0; t < TIMES; ++t) {
#pragma GCC unroll 32
        for (int c = 0; c < CHAINS; ++c) sums[c] = sums[c] * a + b;
    }
#pragma GCC unroll 32
    for (int c = 0; c < CHAINS; ++c) HOLD(sums[c]);
    return 2.0 * TIMES * CHAINS * (VECTOR / 4);
}

#if defined(__AMX_TILE__)
struct Tiles {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t columns[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void configure() {
    static const Tiles tiles;
    _tile_loadconfig(&tiles);
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
    _tile_zero(4); _tile_zero(5); _tile_zero(6); _tile_zero(7);
}

constexpr int TILE_TIMES = 1000;
#define TILE_LOOP(INSTRUCTION, DEPTH)                          \
    configure();                                               \
    for (int t = 0; t < TILE_TIMES; ++t) {                     \
        INSTRUCTION(0, 4, 6); INSTRUCTION(1, 4, 7);            \
        INSTRUCTION(2, 5, 6); INSTRUCTION(3, 5, 7);            \
    }                                                          \
    _tile_release();                                           \
    return 2.0 * TILE_TIMES * 4 * 16 * 16 * DEPTH;
#endif

double bf16(char*, int64_t) {
#if defined(__AMX_BF16__)
    TILE_LOOP(_tile_dpbf16ps, 32)
#elif defined(__AVX512BF16__)
    constexpr int CHAINS = 24, TIMES = 5000;
    __m512 sums[CHAINS] = {};
    __m512bh a{}, b{};
    for (int t = 0; t < TIMES; ++t) {
#pragma GCC unroll 32
        for (int c = 0; c < CHAINS; ++c) sums[c] = _mm512_dpbf16_ps(sums[c], a, b);
#pragma GCC unroll 32
        for (int c = 0; c < CHAINS; ++c) HOLD(sums[c]);
    }
    return 2.0 * TIMES * CHAINS * 32;
#else
    return -1;
#endif
}

double int8(char*, int64_t) {
#if defined(__AMX_INT8__)
    TILE_LOOP(_tile_dpbssd, 64)
#elif defined(__AVX512VNNI__)
    constexpr int CHAINS = 24, TIMES = 5000;
    __m512i sums[CHAINS] = {}, a{}, b{};
    for (int t = 0; t < TIMES; ++t) {
#pragma GCC unroll 32
        for (int c = 0; c < CHAINS; ++c) sums[c] = _mm512_dpbusd_epi32(sums[c], a, b);
#pragma GCC unroll 32
        for (int c = 0; c < CHAINS; ++c) HOLD(sums[c]);
    }
    return 2.0 * TIMES * CHAINS * 64;
#else
    return -1;
#endif
}

double read(char* own, int64_t bytes) {
    const Words* words = (const Words*)own;
    Words sums[8] = {};
    for (int64_t i = 0; i + 8 <= bytes / VECTOR; i += 8) {
#pragma GCC unroll 8
        for (int c = 0; c < 8; ++c) sums[c] ^= words[i + c];
    }
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c) HOLD(sums[c]);
    return bytes;
}

double read_again(char* own, int64_t bytes) {
    double total = 0;
    for (int t = 0; t < 4; ++t) {
        asm volatile("" ::: "memory");
        total += read(own, bytes);
    }
    return total;
}

double copy(char* own, int64_t bytes) {
    memcpy(own, own + bytes / 2, bytes / 2);
    asm volatile("" ::: "memory");
    return bytes;
}

double cycles(char*, int64_t) {  // a chain of operations of one cycle each
    constexpr int TIMES = 10000;
    uint64_t x = 1;
    for (int t = 0; t < TIMES; ++t) {
#pragma GCC unroll 8
        for (int c = 0; c < 8; ++c) {
#if defined(__x86_64__)
            asm volatile("rol $1, %0" : "+r"(x));
#else
            asm volatile("ror %0, %0, #1" : "+r"(x));
#endif
        }
    }
    return TIMES * 8;
}

constexpr Loop LOOPS[] = {fp32, bf16, int8, read, copy, read_again, cycles};

}  // namespace

extern "C" int allow_tiles() {
#if defined(__AMX_TILE__)
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
#else
    return 1;
#endif
}

extern "C" const char* unit_of(int what) {
#if defined(__AMX_BF16__)
    if (what == 1) return "AMX tdpbf16ps";
#elif defined(__AVX512BF16__)
    if (what == 1) return "vdpbf16ps";
#endif
#if defined(__AMX_INT8__)
    if (what == 2) return "AMX tdpbssd";
#elif defined(__AVX512VNNI__)
    if (what == 2) return "vpdpbusd";
#endif
    if (what != 0) return "";
    return VECTOR == 64 ? "512-bit FMA" : VECTOR == 32 ? "256-bit FMA" : "128-bit FMA";
}

extern "C" double measure(int what, int threads, int64_t bytes, int64_t part) {
    std::barrier ready(threads);
    std::atomic<bool> over{false};  // none goes on when another one has ended, alone with the memory
    std::vector<double> rates(threads);
    auto work = [&](int thread) {
        std::unique_ptr<char[]> room(new char[bytes + 64]);
        memset(room.get(), 1, bytes + 64);
        char* own = (char*)(((uintptr_t)room.get() + 63) / 64 * 64);
        std::vector<double> found;
        ready.arrive_and_wait();
        const int64_t start = now_ns();
        for (int64_t window = 0; !over; ++window) {
            const int64_t from = now_ns();
            const double done = LOOPS[what](own + window % (bytes / part) * part, part);
            const int64_t until = now_ns();
            found.push_back(done < 0 ? -1 : done / double(until - from));
            if (until - start > LONGEST_NS) over = true;
        }
        if (found.empty()) found.push_back(0);
        std::sort(found.begin(), found.end());
        rates[thread] = found[found.size() * 9 / 10];
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (auto& other : others) other.join();
    double sum = 0;
    for (double rate : rates) sum += rate;
    return sum;
}
