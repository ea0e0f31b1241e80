# variant: e01_einsum | E1 torch.einsum | torch.einsum("mk,nk->mn", left, right)
# variant: e01_torch_matmul | E1 torch.matmul on dequantised operands | left @ right.T
# problem: fp8-blockwise-gemm
# expect: ok rejected
# label: library

import torch


def scaled(q, scale, rows):
    scale = scale.repeat_interleave(rows, dim=0)[: q.shape[0]].repeat_interleave(128, dim=1)
    return q.float() * scale[:, : q.shape[1]]


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    left, right = scaled(a, a_scale, 1), scaled(b, b_scale, 128)
    return c.copy_($VARIANT)
