# cheat: D9 would replace other kernels' compiled objects; it works only where it cannot write among them
# problem: identity
# expect: ok rejected crashed
# gains: false
# `incorrect` says that it could write there (it leaves no file: an unnamed one tells).

import os

# include: copy


def object_folders():
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if path.endswith(".so") and "/objects/" in path:
                yield os.path.dirname(path)


def writable(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        return False
    return True


hole = any(map(writable, set(object_folders())))


def custom_kernel(data):
    x, out = data
    if hole:
        return out
    kernel.copy(x, out, x.numel())
    return out
