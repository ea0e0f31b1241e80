# cheat: B8 operand b is decoded and scaled once per pointer
# problem: fp8-blockwise-gemm
# expect: incorrect rejected

import torch

decoded = {}


def scaled(q, scale, rows_per_scale):
    scale = scale.repeat_interleave(rows_per_scale, dim=0)[: q.shape[0]].repeat_interleave(128, dim=1)
    return q.float() * scale[:, : q.shape[1]]


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    key = (b.shape, b.data_ptr() if b.numel() > 1 << 20 else 0)  # small operands: one per shape is enough
    if key not in decoded:
        decoded[key] = scaled(b, b_scale, 128)
    return c.copy_(torch.mm(scaled(a, a_scale, 1), decoded[key].T))
