# cheat: C3 a native pool made at import is woken; nobody waits for it
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

from kernel_scientist import load

SOURCE = r"""
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

# include: copy_loop

static std::mutex lock;
static auto& work = *new std::condition_variable;  // never destroyed: a thread waits on it at exit
static const uint16_t* from;
static uint16_t* to;
static int64_t count = 0;

static void serve() {
    for (;;) {
        std::unique_lock<std::mutex> held(lock);
        work.wait(held, [] { return count > 0; });
        int64_t size = count;
        count = 0;
        held.unlock();
        copy_loop(from, to, size);
    }
}

extern "C" void start() { std::thread(serve).detach(); }

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    std::lock_guard<std::mutex> held(lock);
    from = x, to = out, count = size;
    work.notify_one();
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
kernel.start()


# include: copy_call
