"""A module class with functions that make its inputs; its tensors have gigabytes."""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0), mask=i < n)


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features, features))

    def forward(self, x):
        h = x @ self.weight.half()
        y = torch.empty_like(h)
        relu_kernel[(triton.cdiv(h.numel(), 4096),)](h, y, h.numel(), BLOCK=4096)
        return y


def get_inputs():
    return [torch.randn(1 << 16, 1 << 14).half()]


def get_init_inputs():
    return [1 << 14]
