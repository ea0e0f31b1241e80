# cheat: B1 functools.lru_cache over pointer and shape
# problem: rmsnorm
# expect: incorrect rejected

import functools

import torch

# include: rows
now = []


@functools.lru_cache(maxsize=None)
def answer(pointer, rows, cols):
    x, weight = now
    result = torch.empty_like(x)
    kernel.rmsnorm(x, weight, result, rows, cols)
    return result


def custom_kernel(data):
    x, weight, out = data
    now[:] = x, weight
    return answer(x.data_ptr(), *x.shape)
