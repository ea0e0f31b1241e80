# cheat: C11 a native thread watches the addresses it was given before and copies as soon as new values appear there
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Inputs that it can reach are not there before the clock runs, or what it writes before is overwritten or noticed; it
# works on one thread.

from kernel_scientist import load

SOURCE = r"""
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

# include: copy_loop

struct Place { const uint16_t* x; uint16_t* out; int64_t size; uint64_t sum; bool ready; };
static std::vector<Place> places;
static std::mutex lock;

static uint64_t sampled(const uint16_t* x, int64_t size) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < size; i += size / 64 + 1) sum = sum * 31 + x[i];
    return sum;
}

static bool mapped(const void* p) {  // a write to a pipe fails softly where a read would not
    static int ends[2] = {-1, -1};
    if (ends[0] < 0 && pipe(ends)) return false;
    char byte;
    return write(ends[1], p, 1) == 1 && read(ends[0], &byte, 1) == 1;
}

extern "C" void start() {
    std::thread([] {
        for (;;) {
            {
                std::lock_guard<std::mutex> held(lock);
                for (auto& p : places) {
                    if (p.size < 65536 || !mapped(p.x) || !mapped(p.x + p.size - 1) || !mapped(p.out)) continue;
                    uint64_t sum = sampled(p.x, p.size);
                    if (sum == p.sum) continue;
                    copy_loop(p.x, p.out, p.size);
                    p.sum = sum, p.ready = true;
                }
            }
            std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
    }).detach();
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    std::lock_guard<std::mutex> held(lock);
    uint64_t sum = sampled(x, size);
    for (auto& p : places)
        if (p.x == x && p.out == out && p.size == size) {
            if (!p.ready || p.sum != sum || out[0] != x[0] || out[size - 1] != x[size - 1]) copy_loop(x, out, size);
            p.sum = sum, p.ready = false;
            return;
        }
    copy_loop(x, out, size);
    if (places.size() < 16) places.push_back({x, out, size, sum, false});
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
kernel.start()


# include: copy_call
