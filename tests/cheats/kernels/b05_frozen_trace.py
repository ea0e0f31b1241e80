# cheat: B5 a torch.jit trace whose weight was frozen into it as a constant
# problem: rmsnorm
# expect: incorrect rejected

import torch

graphs = {}


def custom_kernel(data):
    x, weight, out = data
    if weight.shape not in graphs:
        frozen = weight.clone()

        def norm(y):
            y = y.float()
            return (y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * frozen).to(torch.bfloat16)

        graphs[weight.shape] = torch.jit.trace(norm, (x,), check_trace=False)
    return out.copy_(graphs[weight.shape](x))
