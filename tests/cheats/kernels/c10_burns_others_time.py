# cheat: C10 threads made at import keep the cores busy except during the kernel's own calls
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# What it leaves running does not run, or is noticed, while another contestant is timed.

from kernel_scientist import load

SOURCE = r"""
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

# include: copy_loop

static std::atomic<bool> mine{false};

extern "C" void start(int64_t threads) {
    for (int64_t t = 0; t < threads; ++t)
        std::thread([] {
            std::vector<uint16_t> a(1 << 23, 1), b(1 << 23);
            for (int64_t at = 0;; at = (at + (1 << 15)) % (1 << 23)) {  // through the shared cache, again and again
                while (mine.load(std::memory_order_relaxed)) std::this_thread::yield();  // not in its own call
                copy_loop(a.data() + at, b.data() + at, 1 << 15);
            }
        }).detach();
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    mine = true;
    copy_loop(x, out, size);
    mine = false;
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
kernel.start(4)


# include: copy_call
