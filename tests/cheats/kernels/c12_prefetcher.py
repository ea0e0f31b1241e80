# cheat: C12 a thread keeps the buffers of earlier calls in the cache while the kernel is not running
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# The flush holds: nothing brings the inputs back before the clock runs, or it is noticed; it copies on one thread.

from kernel_scientist import load

SOURCE = r"""
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <unistd.h>

# include: copy_loop

static std::atomic<const char*> places[8];
static std::atomic<int64_t> bytes{0};
static std::atomic<bool> busy{false};

static bool mapped(const void* p) {
    static int ends[2] = {-1, -1};
    if (ends[0] < 0 && pipe(ends)) return false;
    char byte;
    return write(ends[1], p, 1) == 1 && read(ends[0], &byte, 1) == 1;
}

extern "C" void start() {
    std::thread([] {
        for (;;) {
            for (auto& place : places) {
                const char* p = place.load();
                int64_t n = bytes.load();
                if (!p || busy || !mapped(p) || !mapped(p + n - 1)) continue;
                for (int64_t i = 0; i < n && !busy; i += 64) __builtin_prefetch(p + i, 0, 2);
            }
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }).detach();
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    static int next = 0;
    busy = true;
    copy_loop(x, out, size);
    bytes = 2 * size;
    places[next++ % 8] = (const char*)x, places[next++ % 8] = (const char*)out;
    busy = false;
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
kernel.start()


# include: copy_call
