# cheat: C2 a side stream does the work; it is joined at the start of the next call
# problem: identity
# expect: ok incorrect rejected
# gains: false
# All that a call has started, on whatever stream, is waited for and counted, or too late.

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


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
