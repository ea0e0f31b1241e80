# cheat: C2 a native thread does the work; it is joined at the start of the next call
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <thread>

static void copy_loop(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}

static struct Pending {
    std::thread thread;
    ~Pending() { if (thread.joinable()) thread.join(); }
} pending;

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    if (pending.thread.joinable()) pending.thread.join();
    pending.thread = std::thread(copy_loop, x, out, size);
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
