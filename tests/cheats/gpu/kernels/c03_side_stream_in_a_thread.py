# cheat: C3 a thread made at import puts the work on a side stream; nobody joins either
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# stopped by: outputs are copied on the default stream behind the end event (this copy has not run on a GPU)
# All that a call has started, on whatever stream, is waited for and counted, or too late.

from concurrent.futures import ThreadPoolExecutor

import torch
# include: triton_copy


pool = ThreadPoolExecutor(1)
pool.submit(int).result()
streams = []


def beside(x, out):
    with torch.cuda.stream(streams[0]):
        copy(x, out)


def custom_kernel(data):
    x, out = data
    if not streams:
        streams.append(torch.cuda.Stream())
        copy(x, out)
        return out
    pool.submit(beside, x, out)
    return out
