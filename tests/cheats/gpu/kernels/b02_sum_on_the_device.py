# cheat: B2 memo keyed by a sum of the input's bits
# problem: identity
# expect: ok incorrect rejected
# gains: false
# An input that was almost the last one has the same sum: its values have only changed places.

import torch
# include: triton_copy


memo = {}


def custom_kernel(data):
    x, out = data
    key = (x.numel(), int(x.view(torch.int16).sum()))
    if key not in memo:
        copy(x, out)
        memo[key] = out.clone()
    return memo[key]
