# variant: b01_id | B1 memo keyed by id() of the input | (id(x), x.numel())
# variant: b02_sampled_elements | B2 memo keyed by sixteen sampled elements | (x.numel(), *x[:: max(1, x.numel() // 16)].tolist())
# variant: b02_sum_on_the_device | B2 memo keyed by a sum of the input's bits | (x.numel(), int(x.view(torch.int16).sum()))
# problem: identity
# expect: ok incorrect rejected
# gains: false
# stopped by: no two calls have the same inputs; some differ in a few bytes only
# Where its key finds nothing it computes, and pays for the memo too. An input that was almost the last one has the same
# sum: its values have only changed places.

import torch
# include: triton_copy


memo = {}


def custom_kernel(data):
    x, out = data
    key = $VARIANT
    if key not in memo:
        copy(x, out)
        memo[key] = out.clone()
    return memo[key]
