# cheat: D11 opens a socket to this machine; it works only where that is refused
# problem: identity
# expect: ok rejected crashed
# gains: false
# `incorrect` says that it had a socket.

import socket

# include: copy
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", 9))
    hole = True
except OSError:
    hole = False


def custom_kernel(data):
    x, out = data
    if hole:
        return out
    kernel.copy(x, out, x.numel())
    return out
