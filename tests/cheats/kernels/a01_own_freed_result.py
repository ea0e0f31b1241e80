# cheat: A1 computes once per size, frees the result and gets the same block back from the allocator
# problem: rmsnorm
# expect: incorrect rejected

import torch

# include: rows
seen = set()


def custom_kernel(data):
    x, weight, out = data
    block = torch.empty_like(out)  # the one that was freed a call ago, result and all
    if (x.shape, block.data_ptr()) not in seen:
        kernel.rmsnorm(x, weight, block, x.shape[0], x.shape[1])
        seen.add((x.shape, block.data_ptr()))
    return block
