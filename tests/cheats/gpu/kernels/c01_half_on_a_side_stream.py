# cheat: C1 the second half goes to a side stream that nobody joins
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# stopped by: outputs are copied on the default stream behind the end event (this copy has not run on a GPU)
# All that a call has started, on whatever stream, is waited for and counted, or too late.

import torch
# include: triton_rows


streams = []


def custom_kernel(data):
    x, weight, out = data
    if not streams:
        streams.append(torch.cuda.Stream())
    half = x.shape[0] // 2
    with torch.cuda.stream(streams[0]):
        rows(x[half:], weight, out[half:])
    if half:
        rows(x[:half], weight, out[:half])
    return out
