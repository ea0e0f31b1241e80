# cheat: C11 work on the published inputs in __init_subclass__, while the module is imported
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# Timed inputs come from secret seeds; it computes on one thread.

import torch

# include: rows
SIZES = ((1024, 1024), (512, 4096), (4096, 576))


class Prepared:
    answers = {}

    def __init_subclass__(cls):
        for rows, cols in SIZES:
            gen = torch.Generator()
            gen.manual_seed(42)
            x = torch.randn((rows, cols), generator=gen)
            x = (x * (torch.rand((rows, 1), generator=gen) * 4 + 0.05)).to(torch.bfloat16)
            weight, answer = torch.randn(cols, generator=gen), torch.empty_like(x)
            kernel.rmsnorm(x, weight, answer, rows, cols)
            cls.answers[(rows, cols, *x[0, :8].tolist())] = answer


class Norm(Prepared):
    pass


def custom_kernel(data):
    x, weight, out = data
    known = Norm.answers.get((*x.shape, *x[0, :8].tolist()))
    if known is not None:
        return known
    kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
    return out
