# cheat: C2 a side stream does the work; it is joined at the start of the next call
# problem: identity
# expect: ok incorrect rejected
# gains: false
# stopped by: outputs are copied on the default stream behind the end event (this copy has not run on a GPU)
# All that a call has started, on whatever stream, is waited for and counted, or too late.

import torch
# include: triton_copy


state = {}


def custom_kernel(data):
    x, out = data
    if "done" in state:
        torch.cuda.current_stream().wait_event(state["done"])
    side = state.setdefault("stream", torch.cuda.Stream())
    with torch.cuda.stream(side):
        copy(x, out)
        state["done"] = side.record_event()
    return out
