# variant: e04_false_condition | E4 a kernel under a condition that never holds; torch does the work | if x.numel() < 0: kernel.rmsnorm(x, weight, out, *x.shape)
# variant: e04_never_called | E4 a kernel that is never called; torch does the work | pass
# problem: rmsnorm
# expect: ok rejected
# label: library

import torch

# include: rows


def custom_kernel(data):
    x, weight, out = data
    $VARIANT
    y = x.float()
    out.copy_(y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight)
    return out
