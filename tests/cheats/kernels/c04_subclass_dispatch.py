# cheat: C4 a tensor subclass that computes in __torch_dispatch__ when somebody reads it
# problem: identity
# expect: incorrect rejected crashed

import torch

# include: copy


class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, x, out):
        lazy = torch.Tensor._make_wrapper_subclass(cls, out.shape, dtype=out.dtype)
        lazy.arguments = (x, out)
        return lazy

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def real(value):
            if isinstance(value, Lazy):
                x, out = value.arguments
                kernel.copy(x, out, x.numel())
                return out
            return value

        args = [real(a) for a in args]
        return function(*args, **{k: real(v) for k, v in (kwargs or {}).items()})


def custom_kernel(data):
    x, out = data
    return Lazy(x, out)
