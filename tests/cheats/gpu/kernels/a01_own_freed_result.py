# cheat: A1 computes once per block that the allocator hands out, and returns what is left there
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: every output is compared completely; no worker holds a right one

import torch
# include: triton_rows


seen = set()


def custom_kernel(data):
    x, weight, out = data
    block = torch.empty_like(out)  # the one that was freed some calls ago, result and all
    if (x.shape, block.data_ptr()) not in seen:
        rows(x, weight, block)
        seen.add((x.shape, block.data_ptr()))
    return block
