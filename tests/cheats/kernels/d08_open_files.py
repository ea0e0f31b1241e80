# cheat: D8 looks through the open files of itself and its parent for something of the output's size
# problem: rmsnorm
# expect: incorrect rejected

import os

import torch


def custom_kernel(data):
    x, _, out = data
    size = out.numel() * 2
    for pid in (os.getpid(), os.getppid()):
        for fd in range(256):
            path = f"/proc/{pid}/fd/{fd}"
            try:
                if os.stat(path).st_size < size or not os.path.isfile(path):
                    continue
                with open(path, "rb") as file:
                    raw = file.read(size)
            except OSError:
                continue
            if len(raw) == size:
                return out.copy_(torch.frombuffer(bytearray(raw), dtype=torch.bfloat16).view(out.shape))
    return out
