// What must not happen in Python. In the worker: call the kernel between two clock readings, copy what it returned at
// once; loaded, with all its symbols bound, before the kernel's file is read. In the verifier: sweep the caches.
//
// The Python functions are declared by hand: the interpreter that loads this has them, and no headers are needed.
#include <sched.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

extern "C" void* PyObject_CallOneArg(void* callable, void* argument);

namespace {

inline int64_t clock_ns(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// The processor's own counter: a second clock that no replaced library function can slow down.
inline uint64_t ticks() {
#if defined(__x86_64__)
    uint32_t low, high, core;
    asm volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(core)::"memory");
    return uint64_t(high) << 32 | low;
#elif defined(__aarch64__)
    uint64_t value;
    asm volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
#else
    return 0;
#endif
}

inline int64_t involuntary_switches() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

uint64_t sum_lines(const uint64_t* data, size_t words) {
    uint64_t sum = 0;
    for (size_t i = 0; i < words; i += 8) sum += data[i];
    return sum;
}

}  // namespace

extern "C" {

struct Stamps {
    int64_t start_ns, end_ns;        // CLOCK_MONOTONIC
    uint64_t start_ticks, end_ticks; // the processor's counter
    int64_t cpu_ns;                  // CPU time of all threads from just before the call to just after it
    int64_t switches;                // involuntary context switches meanwhile
};

void* lab_call(void* kernel, void* data, Stamps* stamps) {
    const int64_t switches = involuntary_switches(), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const int64_t start = clock_ns(CLOCK_MONOTONIC);
    const uint64_t start_ticks = ticks();
    void* output = PyObject_CallOneArg(kernel, data);
    const uint64_t end_ticks = ticks();
    const int64_t end = clock_ns(CLOCK_MONOTONIC);
    *stamps = {start, end, start_ticks, end_ticks, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               involuntary_switches() - switches};
    return output;
}

// CPU time of every thread but the calling one.
int64_t lab_others_cpu_ns() { return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID); }

uint64_t lab_ticks() { return ticks(); }

// Wait until no other thread works any more; return the CPU time that they spent meanwhile, beyond a grace: an OpenMP
// pool spins on for a moment after its region, and later than that when it has to wait for its core.
int64_t lab_settle(int64_t window_ns, int64_t limit_ns, int64_t grace_ns) {
    const timespec window = {0, long(window_ns)};
    const int64_t start = lab_others_cpu_ns();
    int64_t before = start;
    for (int64_t waited = 0; waited < limit_ns; waited += window_ns) {
        nanosleep(&window, nullptr);
        const int64_t now = lab_others_cpu_ns();
        if (now - before < window_ns / 10) break;
        before = now;
    }
    const int64_t spent = lab_others_cpu_ns() - start;
    return spent > grace_ns ? spent : 0;
}

// Copy, beginning somewhere in the middle: a thread that runs just ahead of a copy from the front is overtaken.
void lab_copy(char* to, const char* from, size_t bytes, size_t begin) {
    memcpy(to + begin, from + begin, bytes - begin);
    memcpy(to, from, begin);
}

// Write past the caches: what is written here is not in them when the kernel reads it.
void lab_stream(char* to, const char* from, size_t bytes) {
    size_t i = 0;
#if defined(__SSE2__)
    for (; i < bytes && (uintptr_t(to + i) & 15); ++i) to[i] = from[i];
    for (; i + 16 <= bytes; i += 16) _mm_stream_si128((__m128i*)(to + i), _mm_loadu_si128((const __m128i*)(from + i)));
    _mm_sfence();
#endif
    memcpy(to + i, from + i, bytes - i);
}

void lab_stream_fill(char* to, int byte, size_t bytes) {
    char line[4096];
    memset(line, byte, sizeof line);
    for (size_t i = 0; i < bytes; i += sizeof line) lab_stream(to + i, line, bytes - i < sizeof line ? bytes - i : sizeof line);
}

uint64_t lab_hash(const char* data, size_t bytes) {
    uint64_t lanes[4] = {1, 2, 3, 4}, word = 0;
    size_t i = 0;
    for (; i + 32 <= bytes; i += 32)
        for (int lane = 0; lane < 4; ++lane) {
            memcpy(&word, data + i + 8 * lane, 8);
            lanes[lane] = (lanes[lane] ^ word) * 0x9e3779b97f4a7c15u;
            lanes[lane] ^= lanes[lane] >> 29;
        }
    for (; i < bytes; ++i) lanes[i % 4] = (lanes[i % 4] ^ (unsigned char)data[i]) * 0x9e3779b97f4a7c15u;
    return lanes[0] ^ lanes[1] * 3 ^ lanes[2] * 5 ^ lanes[3] * 7;
}

// Sweep the caches of these cores by reading: what was dirty is written back now, and nothing dirty of ours is left
// behind. One thread per core, because a core's own caches are swept by that core only.
uint64_t lab_sweep(const uint64_t* data, size_t words, const int* cores, int count) {
    std::vector<uint64_t> sums(count);
    std::vector<std::thread> team;
    const size_t share = words / count / 8 * 8;
    for (int t = 0; t < count; ++t)
        team.emplace_back([&, t] {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(cores[t], &set);
            sched_setaffinity(0, sizeof set, &set);
            sums[t] = sum_lines(data + t * share, share);
        });
    for (auto& member : team) member.join();
    uint64_t total = 0;
    for (uint64_t sum : sums) total += sum;
    return total;
}

}  // extern "C"
