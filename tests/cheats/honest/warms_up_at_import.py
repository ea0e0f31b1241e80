# honest: runs once on made-up data at import, for the thread pool and the page tables
# problem: rmsnorm
# expect: ok

import torch


# include: rows_variants
warm = torch.randn(64, 256).bfloat16()
kernel.rows_static(warm, torch.ones(256), torch.empty_like(warm), 64, 256)


def custom_kernel(data):
    x, weight, out = data
    kernel.rows_static(x, weight, out, x.shape[0], x.shape[1])
    return out
