# cheat: C2 a stream of the pool does the work and the host waits for it: no event of the default stream sees it
# problem: identity
# expect: ok
# gains: false
# stopped by: the end event is recorded when the call has returned
# Right, and must read its full time.

import torch
# include: triton_copy


streams = []


def custom_kernel(data):
    x, out = data
    if not streams:
        streams.append(torch.cuda.Stream())
    with torch.cuda.stream(streams[0]):
        copy(x, out)
    streams[0].synchronize()
    return out
