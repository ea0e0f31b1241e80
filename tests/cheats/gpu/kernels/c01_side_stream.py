# cheat: C1 the work goes to a side stream that nobody joins
# problem: identity
# expect: ok incorrect rejected
# gains: false
# stopped by: outputs are copied on the default stream behind the end event (this copy has not run on a GPU)
# All that a call has started, on whatever stream, is waited for and counted, or too late.

import torch
# include: triton_copy


streams = []


def custom_kernel(data):
    x, out = data
    if not streams:
        streams.append(torch.cuda.Stream())
    with torch.cuda.stream(streams[0]):
        copy(x, out)
    return out
