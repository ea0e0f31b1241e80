# cheat: C3 most of the vector is left to a detached thread, and the call ends with its own part
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

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int64_t mine = size / 8;
    std::thread(copy_loop, x + mine, out + mine, size - mine).detach();
    copy_loop(x, out, mine);
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
