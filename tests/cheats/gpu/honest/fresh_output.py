# honest: returns memory of its own instead of the buffer
# problem: rmsnorm
# expect: ok

import torch
# include: triton_rows


def custom_kernel(data):
    x, weight, out = data
    result = torch.empty_like(out)
    rows(x, weight, result)
    return result
