# honest: prints a line in each call, from Python and from C++
# problem: identity
# expect: ok

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstdio>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    std::memcpy(out, x, 2 * size);
    std::printf("copied %ld\n", (long)size);
    std::fflush(stdout);
}
"""
kernel = load(SOURCE)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    print("done", x.numel(), flush=True)
    return out
