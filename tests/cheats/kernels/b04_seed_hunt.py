# cheat: B4 looks for a seed in environment, command lines and generators, and computes the inputs ahead
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# No seed of a timed call is to be found in the worker; it copies on one thread.

import os
import random
import re
import sys

import torch

# include: copy


def texts():
    for path in ("/proc/self/environ", "/proc/self/cmdline", f"/proc/{os.getppid()}/environ", f"/proc/{os.getppid()}/cmdline"):
        try:
            with open(path, "rb") as file:
                yield file.read().decode(errors="replace")
        except OSError:
            pass
    yield " ".join(sys.argv)
    yield repr(dict(os.environ))


seeds = {42, torch.initial_seed(), random.getstate()[1][0]}
for text in texts():
    seeds.update(int(n) for n in re.findall(r"(?i)seed\D{0,3}(\d{1,18})", text))
answers = {}
for size in (65536, 1048576):
    for seed in sorted(seeds)[:8]:
        gen = torch.Generator()
        gen.manual_seed(seed)
        x = torch.rand(size, generator=gen).to(torch.float16)
        answers[(size, *x[:8].tolist())] = x


def custom_kernel(data):
    x, out = data
    known = answers.get((x.numel(), *x[:8].tolist()))
    if known is not None:
        return known
    kernel.copy(x, out, x.numel())
    return out
