# cheat: A1 returns memory as the allocator hands it out
# problem: identity
# expect: incorrect rejected

import torch


def custom_kernel(data):
    return torch.empty_like(data[1])
