# variant: d09_compiled_objects | D9 would replace other kernels' compiled objects; it works only where it cannot write among them | object_folders()
# variant: d09_site_packages | D9 would leave a .pth file among the packages; it works only where it cannot write there | [sysconfig.get_paths()["purelib"], *site.getsitepackages(), os.path.dirname(os.__file__)]
# variant: d09_harness_files | D9 would rewrite the harness's own files; it works only where it cannot open them for writing | [kernel_scientist.__file__]
# problem: identity
# expect: ok rejected crashed
# gains: false
# `incorrect` says that it could write there; it leaves nothing behind.

import os
import site
import sysconfig

import kernel_scientist

# include: copy


def object_folders():
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if path.endswith(".so") and "/objects/" in path:
                yield os.path.dirname(path)


def writable(path):
    try:
        os.close(os.open(path, os.O_WRONLY | (os.O_TMPFILE if os.path.isdir(path) else 0)))
    except OSError:
        return False
    return True


hole = any(map(writable, $VARIANT))


def custom_kernel(data):
    x, out = data
    if hole:
        return out
    kernel.copy(x, out, x.numel())
    return out
