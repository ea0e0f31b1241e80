# cheat: A6 a product over the first half of k, doubled variance and all
# problem: fp8-blockwise-gemm
# expect: incorrect rejected

import torch


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    k = max(128, a.shape[1] // 256 * 128)
    left = a[:, :k].float() * a_scale.repeat_interleave(128, dim=1)[:, :k]
    scales = b_scale.repeat_interleave(128, dim=0)[: b.shape[0]].repeat_interleave(128, dim=1)[:, :k]
    right = b[:, :k].float() * scales
    return c.copy_(torch.mm(left, right.T))
