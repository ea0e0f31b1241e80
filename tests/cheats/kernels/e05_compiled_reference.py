# variant: e05_torch_compile | E5 the reference under torch.compile | dynamic=True
# variant: e05_torch_compile_eager | E5 the reference under torch.compile with a backend that compiles nothing | dynamic=True, backend="eager"
# problem: rmsnorm
# expect: ok rejected crashed timeout
# label: compile

import torch


@torch.compile($VARIANT)
def norm(x, weight):
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(dim=1, keepdim=True) + 1e-6) * weight).bfloat16()


def custom_kernel(data):
    x, weight, out = data
    return out.copy_(norm(x, weight))
