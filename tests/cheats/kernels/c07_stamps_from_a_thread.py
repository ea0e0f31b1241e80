# cheat: C7 a thread waits for the native call's stamps to be written and writes smaller ones over them
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# No more may be hidden than the clocks' noise; it copies on one thread.

import ctypes
import gc

from kernel_scientist import load

SOURCE = r"""
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

struct Stamps {
    int64_t start_ns, end_ns;
    uint64_t start_ticks, end_ticks;
    int64_t cpu_ns, switches;
};
static volatile Stamps* stamps = nullptr;

extern "C" void watch(int64_t place) { stamps = (volatile Stamps*)place; }

static void lie(int64_t before) {
    for (long spins = 0; stamps->switches == -7 && spins < 200000; ++spins) __builtin_ia32_pause();
    if (stamps->end_ns == before) return;
    int64_t start = stamps->start_ns, ns = stamps->end_ns - start;
    uint64_t ticks = stamps->end_ticks - stamps->start_ticks;
    int64_t said = std::min(ns, std::max<int64_t>({int64_t((ns - 45000) / 1.08), ns / 8, 2500}));
    stamps->end_ticks = stamps->start_ticks + uint64_t(double(ticks) / ns * said);
    stamps->end_ns = start + said;
}

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
    if (!stamps) return;
    stamps->switches = -7;  // written last by whoever measures
    std::thread(lie, stamps->end_ns).detach();
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])

for o in gc.get_objects():
    if type(o).__name__ == "NativeHarness" and hasattr(o, "_stamps"):
        kernel.watch(ctypes.addressof(o._stamps))
        break


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
