# cheat: C6 torch's events, their times and synchronize are replaced at import
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# stopped by: the screen; and times come from functions that were bound before the file was read
# Its times come from functions that were bound natively before its file was read.

import torch
# include: triton_copy


torch.cuda.Event.elapsed_time = lambda *_: 0.001
torch.cuda.Event.record = lambda *_: None
torch.cuda.Event.synchronize = lambda *_: None
torch.cuda.synchronize = lambda *_: None


def custom_kernel(data):
    x, out = data
    copy(x, out)
    return out
