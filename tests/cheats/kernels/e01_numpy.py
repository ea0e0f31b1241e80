# cheat: E1 NumPy does the work
# problem: rmsnorm
# expect: rejected
# label: library

import numpy as np
import torch


def custom_kernel(data):
    x, weight, out = data
    bits = x.view(torch.int16).numpy().view(np.uint16)
    values = (bits.astype(np.uint32) << 16).view(np.float32)
    scale = 1 / np.sqrt(np.square(values).mean(axis=1, keepdims=True, dtype=np.float32) + np.float32(1e-6))
    result = (values * scale * weight.numpy()).view(np.uint32)
    rounded = (result + 0x7FFF + ((result >> 16) & 1)) >> 16
    out.view(torch.int16).numpy().view(np.uint16)[...] = rounded.astype(np.uint16)
    return out
