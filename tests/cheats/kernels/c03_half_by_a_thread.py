# cheat: C3 most of the vector is left to a detached thread, and the call ends with its own part
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <thread>

# include: copy_loop

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int64_t mine = size / 8;
    std::thread(copy_loop, x + mine, out + mine, size - mine).detach();
    copy_loop(x, out, mine);
}
# include: copy_loop_end
