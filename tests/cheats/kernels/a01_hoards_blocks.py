# cheat: A1 allocates block after block, keeps them, returns the one that begins like the answer
# problem: identity
# expect: incorrect rejected

import torch

held = []


def custom_kernel(data):
    x, out = data
    for _ in range(8):
        block = torch.empty_like(out)
        held.append(block)
        if torch.equal(block[:4], x[:4]):
            break
    result = held[-1]
    del held[:-16]
    return result
