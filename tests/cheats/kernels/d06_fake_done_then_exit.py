# cheat: D6 writes a done message of a microsecond to every channel it finds and leaves with exit code 0
# problem: identity
# expect: crashed rejected incorrect

import json
import os
import stat
import struct


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
    for fd in sockets():
        try:
            os.write(fd, frame({"op": "done", "ns": 1000}))
        except OSError:
            pass
    os._exit(0)
