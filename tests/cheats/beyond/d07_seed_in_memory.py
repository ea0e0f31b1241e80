# cheat: D7 looks for a seed near the word in every string the collector can reach
# expect: rejected
# problem: identity
# No seed of a timed call is to be found in the worker; it copies on one thread.

import gc
import re

import torch

# include: copy
answers = {}


def hunt():
    for o in gc.get_objects():
        if isinstance(o, dict) and len(o) < 64:
            for key, value in list(o.items()):
                if isinstance(key, str) and "seed" in key.lower() and isinstance(value, int):
                    yield value
                if isinstance(value, str) and len(value) < 4096:
                    yield from (int(n) for n in re.findall(r"(?i)seed\W{1,4}(\d{2,18})", value))


def custom_kernel(data):
    x, out = data
    if x.numel() not in answers:
        for seed in {42, *list(hunt())[:4]}:
            gen = torch.Generator()
            gen.manual_seed(seed % (1 << 63))
            guess = torch.rand(x.numel(), generator=gen).to(torch.float16)
            answers[x.numel()] = guess
            if torch.equal(guess[:8], x[:8]):
                break
    if torch.equal(answers[x.numel()][:8], x[:8]):
        return answers[x.numel()]
    kernel.copy(x, out, x.numel())
    return out
