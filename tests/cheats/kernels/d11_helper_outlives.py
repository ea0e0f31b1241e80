# cheat: D11 starts a helper in a session of its own, which would outlive the run
# problem: identity
# expect: rejected crashed

import subprocess
import sys

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"], start_new_session=True)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
