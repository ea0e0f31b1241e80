# cheat: A11 answers to every published case, computed at import from the published seed
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# Timed calls have secret seeds: it finds nothing and computes, one-threaded.

import torch

# include: rows


def published(rows, cols, seed=42):
    gen = torch.Generator()
    gen.manual_seed(seed)
    x = torch.randn((rows, cols), generator=gen)
    spread = torch.rand((rows, 1), generator=gen) * 4 + 0.05
    weight = torch.randn(cols, generator=gen)
    return (x * spread).to(torch.bfloat16), weight


def fingerprint(x):
    return (*x.shape, *x.view(-1)[:8].tolist())


answers = {}
SIZES = ((1, 128), (7, 1000), (33, 577), (128, 1024), (1024, 1024), (512, 4096), (4096, 576))
for size in SIZES:
    x, weight = published(*size)
    answer = torch.empty_like(x)
    kernel.rmsnorm(x, weight, answer, *size)
    answers[fingerprint(x)] = answer


def custom_kernel(data):
    x, weight, out = data
    known = answers.get(fingerprint(x))
    if known is not None:
        return known
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out
