# honest: asserts shapes, types and strides
# problem: rmsnorm
# expect: ok

import torch


# include: rows_variants


def custom_kernel(data):
    x, weight, out = data
    rows, cols = x.shape
    assert x.is_contiguous() and out.is_contiguous() and weight.is_contiguous()
    assert weight.shape == (cols,) and out.shape == x.shape
    assert x.dtype == out.dtype == torch.bfloat16 and weight.dtype == torch.float32
    kernel.rows_static(x, weight, out, rows, cols)
    assert x.data_ptr() != out.data_ptr()
    return out
