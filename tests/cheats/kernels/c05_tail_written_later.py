# cheat: C5 the beginning is there on return; a thread that was left over writes the rest 50 us later
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Whatever runs after the return is waited for, counted or too late: it cannot look faster than its one thread is.

from kernel_scientist import load

SOURCE = r"""
#include <chrono>
#include <cstdint>
#include <thread>

# include: copy_loop

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    int64_t head = size / 8;
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        copy_loop(x + head, out + head, size - head);
    }).detach();
    copy_loop(x, out, head);
}
# include: copy_loop_end
