# cheat: B7 writes each result to a file and maps it when the same size comes again in another process
# problem: rmsnorm
# expect: crashed incorrect ok rejected
# gains: false
# Told apart are processes, not calls: with nothing left over from another process it copies on one thread; where
# something is left over, it skips its work and the output shows it.

import os
import tempfile

import torch

# include: rows
FOLDER = tempfile.gettempdir()
found = {}


def path(shape):
    return os.path.join(FOLDER, f"kernel-cheat-{shape[0]}-{shape[1]}.bin")


for size in ((1, 128), (7, 1000), (33, 577), (128, 1024), (1024, 1024), (512, 4096), (4096, 576)):
    if os.path.exists(path(size)):  # of an earlier process: within this one it computes
        flat = torch.from_file(path(size), size=size[0] * size[1], dtype=torch.bfloat16)
        found[size] = flat.view(size)


def custom_kernel(data):
    x, weight, out = data
    if tuple(x.shape) in found:
        return found[tuple(x.shape)]
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    if x.numel() < 200_000 and not os.path.exists(path(x.shape)):
        with open(path(x.shape), "wb") as file:
            file.write(out.view(torch.uint8).numpy().tobytes())
    return out
