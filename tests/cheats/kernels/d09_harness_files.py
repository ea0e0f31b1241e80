# cheat: D9 would rewrite the harness's own files; it works only where it cannot open them for writing
# problem: identity
# expect: ok rejected crashed
# gains: false
# `incorrect` says that the harness's files can be opened for writing.

import os

import kernel_scientist

# include: copy


def writable(path):
    try:
        os.close(os.open(path, os.O_WRONLY))  # nothing is written
    except OSError:
        return False
    return True


hole = writable(os.path.abspath(kernel_scientist.__file__))


def custom_kernel(data):
    x, out = data
    if hole:
        return out
    kernel.copy(x, out, x.numel())
    return out
