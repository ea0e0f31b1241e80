# cheat: B3 as in a known contest: after a pass is learnt its position in the pass picks a stored result
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: no two calls have the same inputs; some differ in a few bytes only

import torch
# include: triton_rows


bank = {}


def custom_kernel(data):
    x, weight, out = data
    inputs, outputs, state = bank.setdefault(x.shape, ([], [], [0]))
    if len(inputs) < 2:  # the sequence of each shape is taken to be two long
        inputs.append((x, weight))
        outputs.append(torch.empty_like(out))
        rows(x, weight, out)
        outputs[-1].copy_(out)
        return out
    place = state[0] % len(inputs)
    state[0] += 1
    if place == 0:
        for (a, w), o in zip(inputs, outputs):
            rows(a, w, o)
    return outputs[place]
