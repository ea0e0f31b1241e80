# cheat: A1 returns memory as the allocator hands it out
# problem: identity
# expect: incorrect rejected
# stopped by: every output is compared completely; no worker holds a right one

import torch


def custom_kernel(data):
    return torch.empty_like(data[1])
