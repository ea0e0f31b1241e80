# cheat: D9 would leave a .pth file among the packages; it works only where it cannot write there
# problem: identity
# expect: ok rejected crashed
# gains: false
# `incorrect` says that it could write there (it leaves no file: an unnamed one tells).

import os
import site
import sysconfig

# include: copy


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
