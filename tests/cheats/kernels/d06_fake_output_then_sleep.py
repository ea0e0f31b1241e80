# cheat: D6 writes done and an output itself, reading it off the input, and stays alive
# problem: identity
# expect: crashed rejected timeout incorrect

import json
import os
import stat
import struct
import time

import torch


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
    raw = x.view(torch.uint8).numpy().tobytes()
    spec = {"kind": "tensor", "dtype": "float16", "shape": list(x.shape), "order": [0], "buffer": 0}
    for fd in sockets():
        try:
            os.write(fd, frame({"op": "done", "ns": 1000}))
            time.sleep(0.05)
            os.write(fd, frame({"op": "output", "data": spec, "buffers": [len(raw)]}) + raw)
        except OSError:
            pass
    time.sleep(0.2)
    return out
