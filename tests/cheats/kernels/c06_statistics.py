# cheat: C6 every mean and median in the process is a thousandth
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Statistics are made elsewhere; it copies on one thread.

import statistics

import numpy
import torch

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def thousandth(function):
    return lambda *args, **kwargs: function(*args, **kwargs) / 1000


for name in ("mean", "fmean", "median", "geometric_mean", "quantiles"):
    if name != "quantiles":
        setattr(statistics, name, thousandth(getattr(statistics, name)))
for name in ("mean", "median", "percentile", "quantile"):
    setattr(numpy, name, thousandth(getattr(numpy, name)))
torch.median = thousandth(torch.median)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
