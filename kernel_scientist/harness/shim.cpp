// What must not happen in Python. In the worker: call the kernel between two clock readings, copy what it returned at
// once; loaded, with all its symbols bound, before the kernel's file is read. In the verifier: sweep the caches.
//
// The Python functions are declared by hand: the interpreter that loads this has them, and no headers are needed.
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
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

constexpr uint64_t PLACE = 0x9e3779b97f4a7c15u, START = 0xc2b2ae3d27d4eb4fu;

// Eight lanes of the processor's widest multiplication (as in XXH3), so that it goes as fast as the memory.
void hash_part(uint64_t* sums, const char* data, size_t from, size_t to) {
    uint64_t lanes[8] = {}, words[8];  // local: nothing that is read through a char* can be one of them
    auto mix = [&](size_t i) {
        for (int lane = 0; lane < 8; ++lane) {
            const uint64_t mixed = words[lane] ^ (PLACE * (i + 8 * lane) + START);
            lanes[lane] += (mixed & 0xffffffffu) * (mixed >> 32) + (words[lane] << 32 | words[lane] >> 32);
        }
    };
    size_t i = from;
    for (; i + 64 <= to; i += 64) {
        memcpy(words, data + i, 64);
        mix(i);
    }
    if (i < to) {
        memset(words, 0, 64);
        memcpy(words, data + i, to - i);
        mix(i);
    }
    for (int lane = 0; lane < 8; ++lane) sums[lane] += lanes[lane];
}

// Tells one output from another; no cryptographic hash. The order of the words does not matter, as each is mixed with
// its place: so it may begin anywhere, and a thread that still writes just ahead of it from the front is overtaken.
uint64_t hash(const char* data, size_t bytes, size_t begin) {
    uint64_t sums[8] = {};
    begin = begin / 64 * 64;
    hash_part(sums, data, begin, bytes);
    hash_part(sums, data, 0, begin);
    uint64_t total = bytes;
    for (uint64_t sum : sums) {
        total = (total ^ sum) * PLACE;
        total ^= total >> 29;
    }
    return total;
}

// Read so many bytes. Returns 0; 1 when the time is over; 2 when the other side is gone.
int await(int socket, char* to, size_t count, int64_t deadline_ns) {
    pollfd ready = {socket, POLLIN, 0};
    while (count > 0) {
        const int64_t left = (deadline_ns - clock_ns(CLOCK_MONOTONIC)) / 1000000;
        if (left <= 0) return 1;
        const int ripe = poll(&ready, 1, int(left < 1000000 ? left : 1000000));
        if (ripe < 0 && errno != EINTR) return 2;
        if (ripe <= 0) continue;
        const ssize_t got = recv(socket, to, count, MSG_DONTWAIT);
        if (got <= 0) return 2;
        to += got;
        count -= got;
    }
    return 0;
}

}  // namespace

extern "C" {

struct Stamps {
    int64_t start_ns, end_ns;        // CLOCK_MONOTONIC
    uint64_t start_ticks, end_ticks; // the processor's counter
    int64_t cpu_ns;                  // CPU time of all threads from just before the call to just after it
    int64_t switches;                // involuntary context switches meanwhile
};

// Worker: the first call of a row waits at the gate, the last one rings the bell and waits until it is heard, each a
// single byte on the socket. What lies between gate and bell on the verifier's clock is the row, two wake-ups, and for
// one call nothing else. If it did not wait, the verifier might, for the very core that the worker goes on using.
void* lab_call(void* kernel, void* data, Stamps* stamps, int gate, int bell) {
    char byte = 'r';
    if (gate >= 0 && (send(gate, &byte, 1, MSG_NOSIGNAL) != 1 || recv(gate, &byte, 1, 0) != 1)) _exit(0);
    const int64_t switches = involuntary_switches(), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const int64_t start = clock_ns(CLOCK_MONOTONIC);
    const uint64_t start_ticks = ticks();
    void* output = PyObject_CallOneArg(kernel, data);
    const uint64_t end_ticks = ticks();
    const int64_t end = clock_ns(CLOCK_MONOTONIC);
    if (bell >= 0 && (send(bell, &byte, 1, MSG_NOSIGNAL) != 1 || recv(bell, &byte, 1, 0) != 1)) _exit(0);
    *stamps = {start, end, start_ticks, end_ticks, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               involuntary_switches() - switches};
    return output;
}

// Verifier: open the gate, wait for the bell, then for the digest that pins the output down, by this process's clock, in
// window: {opened, rung, pinned}. Returns 0; 1 when the time is over; 2 when the worker is gone.
int lab_row(int socket, int64_t limit_ms, int64_t* window, uint64_t* digest) {
    char byte = 'g';
    window[0] = clock_ns(CLOCK_MONOTONIC);
    const int64_t deadline = window[0] + limit_ms * 1000000;
    if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return 2;
    if (const int failed = await(socket, &byte, 1, deadline)) return failed;
    window[1] = clock_ns(CLOCK_MONOTONIC);
    if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return 2;
    const int failed = await(socket, (char*)digest, sizeof *digest, deadline);
    window[2] = clock_ns(CLOCK_MONOTONIC);
    return failed;
}

// Worker: the digest of what lies at all these places, sent at once if there is a socket.
uint64_t lab_pin(int socket, const char* const* places, const size_t* sizes, int count, double anywhere) {
    uint64_t total = START;
    for (int i = 0; i < count; ++i)
        total = (total ^ hash(places[i], sizes[i], size_t(anywhere * sizes[i]))) * PLACE + i;
    if (socket >= 0 && send(socket, &total, sizeof total, MSG_NOSIGNAL) != sizeof total) _exit(0);
    return total;
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
