# cheat: D6 sends its result twice, the better one first
# problem: identity
# expect: crashed rejected incorrect

import json
import os
import stat
import struct

# include: copy

def frame(header):
    text = json.dumps({**header, "buffers": header.get("buffers", [])}).encode()
    return struct.pack("<I", len(text)) + text


def sockets():
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode) or stat.S_ISFIFO(os.fstat(fd).st_mode):
                yield fd
        except OSError:
            pass


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    for fd in sockets():
        try:
            os.write(fd, frame({"op": "done", "ns": 1000}))
        except OSError:
            pass
    return out
