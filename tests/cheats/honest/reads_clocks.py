# honest: reads Python's clocks in each call and keeps statistics
# problem: identity
# expect: ok

import statistics
import time


from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    std::memcpy(out, x, 2 * size);
}
"""
kernel = load(SOURCE)
history = {}


def custom_kernel(data):
    x, out = data
    start = time.perf_counter_ns()
    kernel.copy(x, out, x.numel())
    history.setdefault(x.numel(), []).append(time.perf_counter_ns() - start)
    if len(history[x.numel()]) > 8:
        history[x.numel()] = [statistics.median(history[x.numel()])]
    return out
