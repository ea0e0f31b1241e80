# honest: try and finally around the call, and an exception of its own for a wrong type
# problem: rmsnorm
# expect: ok

import torch


# include: rows_variants
state = {"running": 0}


def custom_kernel(data):
    x, weight, out = data
    state["running"] += 1
    try:
        if x.dtype != torch.bfloat16:
            raise TypeError(f"bf16 expected, not {x.dtype}")
        kernel.rows_static(x, weight, out, x.shape[0], x.shape[1])
    finally:
        state["running"] -= 1
    return out
