# cheat: B3 learns the sequence of inputs, does a whole pass in its first call and nothing in the others
# problem: identity
# expect: ok incorrect rejected
# gains: false
# It keeps its inputs alive, so that no pointer comes again and no pass ever repeats; it copies on one thread.

import torch

# include: copy
sequence, results = [], {}
known = False


def custom_kernel(data):
    global known
    x, out = data
    key = (x.data_ptr(), x.numel())
    order = [k for k, _ in sequence]
    if not known and key in order:
        known = True  # the second pass begins: the sequence repeats
    if not known:
        sequence.append((key, x))
        kernel.copy(x, out, x.numel())
        results[key] = out.clone()
        return out
    if key == order[0]:
        for k, tensor in sequence:
            if k not in results:
                results[k] = torch.empty_like(tensor)
            kernel.copy(tensor, results[k], tensor.numel())
    if key in results:
        return results[key]
    kernel.copy(x, out, x.numel())
    return out
