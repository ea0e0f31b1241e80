# cheat: B1 memo in a weak dictionary keyed by the tensor object
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Where every call has a tensor object of its own it never finds one again, and computes on one thread.

from torch.utils.weak import WeakTensorKeyDictionary

# include: copy
memo = WeakTensorKeyDictionary()


def custom_kernel(data):
    x, out = data
    if x not in memo:
        kernel.copy(x, out, x.numel())
        memo[x] = out.clone()
    return memo[x]
