# cheat: C12 a thread reads all tensors of the device on a stream of its own, so that they are in the cache
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# stopped by: the screen; and inputs are written and swept just before the call, so that nothing can be read early
# The flush holds: nothing brings the inputs back before the clock runs, or it is noticed.

import gc
import threading

import torch
# include: triton_copy


stop, busy = threading.Event(), [False]


def prefetch():
    stream = None
    while not stop.wait(0.0005):
        if busy[0] or not torch.cuda.is_initialized():
            continue
        stream = stream or torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for thing in gc.get_objects():
                if type(thing) is torch.Tensor and thing.is_cuda and thing.dtype == torch.float16 and not busy[0]:
                    thing.view(torch.int16).max()
        stream.synchronize()


threading.Thread(target=prefetch, daemon=True).start()


def custom_kernel(data):
    busy[0] = True
    x, out = data
    copy(x, out)
    busy[0] = False
    return out
