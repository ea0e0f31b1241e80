# cheat: C6 torch's events and synchronize are replaced in the call, by the module's name, and put back
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Its times come from functions that were bound natively before its file was read.

import sys
import threading

import torch
# include: triton_copy


places = [("torch.cuda", "synchronize"), ("torch.cuda", "Event"), ("torch.cuda.streams", "Event")]


class Quick(torch.cuda.Event):
    def elapsed_time(self, other):
        return 0.001


def put_back(true):
    for (module, name), value in true.items():
        setattr(sys.modules[module], name, value)


def custom_kernel(data):
    x, out = data
    true = {(module, name): getattr(sys.modules[module], name) for module, name in places}
    for module, name in places:
        setattr(sys.modules[module], name, Quick if name == "Event" else lambda *_: None)
    copy(x, out)
    timer = threading.Timer(0.002, put_back, (true,))  # when the call has been timed
    timer.daemon = True
    timer.start()
    return out
