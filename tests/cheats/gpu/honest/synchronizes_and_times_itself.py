# honest: two events and a synchronisation in each call, for figures that nobody reads
# problem: identity
# expect: ok

import torch
# include: triton_copy


times = []


def custom_kernel(data):
    x, out = data
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    copy(x, out)
    end.record()
    torch.cuda.synchronize()
    times.append(start.elapsed_time(end))
    return out
