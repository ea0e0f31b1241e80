# cheat: C5 a resident thread spins on a mailbox; the call only posts into it
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

from kernel_scientist import load

SOURCE = r"""
#include <atomic>
#include <cstdint>
#include <thread>

# include: copy_loop

struct Job { const uint16_t* x; uint16_t* out; int64_t size; };
static Job job;
static std::atomic<int> posted{0};

extern "C" void start() {
    std::thread([] {
        for (int seen = 0;;) {
            int now = posted.load(std::memory_order_acquire);
            if (now == seen) { std::this_thread::yield(); continue; }
            seen = now;
            copy_loop(job.x, job.out, job.size);
        }
    }).detach();
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    job = {x, out, size};
    posted.fetch_add(1, std::memory_order_release);
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
kernel.start()


# include: copy_call
