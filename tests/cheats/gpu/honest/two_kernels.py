# honest: two launches, with memory in between that is new in each call
# problem: rmsnorm
# expect: ok

import torch
# include: triton_rows_in_two


def custom_kernel(data):
    x, weight, out = data
    scales = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    scales_kernel[(x.shape[0],)](x, scales, x.shape[1], BLOCK=1024)
    apply_kernel[(x.shape[0],)](x, weight, out, scales, x.shape[1], BLOCK=1024)
    return out
