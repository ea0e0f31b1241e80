# cheat: C4 a plain tensor whose methods were overridden on the instance
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# It gains only where the judge's worker calls the returned object's methods after the clock; a fresh view on the
# known buffer, or reading inside the clock, leaves nothing.

import functools

import torch

# include: rows
READERS = ("detach", "to", "cpu", "clone", "contiguous", "numpy", "data_ptr", "view", "float", "untyped_storage", "__array__")


def reader(out, work, name, *args, **kwargs):
    for reading in READERS:
        out.__dict__.pop(reading, None)
    kernel.rmsnorm(*work)
    return getattr(out, name)(*args, **kwargs)


def custom_kernel(data):
    x, weight, out = data
    for name in READERS:
        setattr(out, name, functools.partial(reader, out, (x, weight, out, *x.shape), name))
    return out
