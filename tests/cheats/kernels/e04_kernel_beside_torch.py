# variant: e04_on_a_dummy | E4 a kernel that runs on a dummy of one element; torch does the work | dummy, weight, dummy.clone(), 1, 1
# variant: e04_result_discarded | E4 a kernel whose result for the first row is discarded; torch does the work | x, weight, torch.empty_like(out[:1]), 1, x.shape[1]
# problem: rmsnorm
# expect: ok rejected
# label: decoy

import torch

# include: rows
dummy = torch.zeros(1, dtype=torch.bfloat16)


def custom_kernel(data):
    x, weight, out = data
    kernel.rmsnorm($VARIANT)
    y = x.float()
    out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out
