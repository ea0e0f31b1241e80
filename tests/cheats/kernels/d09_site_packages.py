# cheat: D9 would leave a .pth file among the packages; it works only where it cannot write there
# problem: identity
# expect: ok rejected crashed
# gains: false
# `incorrect` says that it could write there (it leaves no file: an unnamed one tells).

import os
import site
import sysconfig

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def writable(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        return False
    return True


hole = any(map(writable, {sysconfig.get_paths()["purelib"], *site.getsitepackages(), os.path.dirname(os.__file__)}))


def custom_kernel(data):
    x, out = data
    if hole:
        return out
    kernel.copy(x, out, x.numel())
    return out
