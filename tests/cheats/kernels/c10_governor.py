# cheat: C10 writes the processor's governor (the value it has, so that nothing changes)
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# It may ask, and is refused or not; a contestant timed next to it, and itself, run as before on one thread.

import glob

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
faster = False
for path in glob.glob("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"):
    try:
        with open(path, "r+") as file:
            value = file.read()
            file.seek(0)
            file.write(value)
            faster = True
    except OSError:
        pass


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
