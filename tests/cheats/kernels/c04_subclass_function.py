# cheat: C4 a tensor subclass over the output buffer that computes in __torch_function__
# problem: rmsnorm
# expect: incorrect rejected crashed

import torch

# include: rows


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        for lazy in args:
            work = lazy.__dict__.pop("work", None) if isinstance(lazy, Lazy) else None
            if work:
                kernel.rmsnorm(*work)
        return super().__torch_function__(function, types, args, kwargs or {})


def custom_kernel(data):
    x, weight, out = data
    lazy = out.as_subclass(Lazy)
    lazy.__dict__["work"] = (x, weight, out, *x.shape)
    return lazy
