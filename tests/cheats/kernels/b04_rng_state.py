# cheat: B4 takes the next input from the state of torch's own generator
# problem: identity
# expect: ok incorrect rejected
# gains: false
# The worker's generators make no input; it copies on one thread.

import torch

# include: copy
answers = {}


def foresee(size):
    state = torch.get_rng_state()
    x = torch.rand(size).to(torch.float16)
    torch.set_rng_state(state)
    answers[(size, *x[:8].tolist())] = x


for size in (65536, 1048576, 4194304):
    foresee(size)


def custom_kernel(data):
    x, out = data
    known = answers.get((x.numel(), *x[:8].tolist()))
    if known is not None:
        return known
    kernel.copy(x, out, x.numel())
    return out
