# cheat: C2 a native thread does the work; it is joined at the start of the next call
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <thread>

# include: copy_loop

static struct Pending {
    std::thread thread;
    ~Pending() { if (thread.joinable()) thread.join(); }
} pending;

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    if (pending.thread.joinable()) pending.thread.join();
    pending.thread = std::thread(copy_loop, x, out, size);
}
# include: copy_loop_end
