# cheat: E1 torch's fused rms_norm through an alias
# problem: rmsnorm
# expect: ok rejected
# label: library

import torch.nn.functional as layers


def custom_kernel(data):
    x, weight, out = data
    return out.copy_(layers.rms_norm(x.float(), (x.shape[1],), weight, 1e-6))
