# cheat: A1 computes one tile of eight, the rest is what the allocator had
# problem: identity
# expect: incorrect rejected

import torch

# include: copy


def custom_kernel(data):
    x, out = data
    result = torch.empty_like(out)
    kernel.copy(x, result, (x.numel() + 7) // 8)
    return result
