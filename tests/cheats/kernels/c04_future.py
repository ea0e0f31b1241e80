# cheat: C4 returns a future in place of a tensor
# problem: identity
# expect: incorrect rejected crashed

import torch

# include: copy


def custom_kernel(data):
    x, out = data
    future = torch.futures.Future()

    def work(done):
        kernel.copy(x, out, x.numel())
        return out

    result = future.then(work)
    future.set_result(None)
    return result
