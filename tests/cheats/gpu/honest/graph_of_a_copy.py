# honest: a graph a shape; inputs are copied in, the output is copied out
# problem: identity
# expect: ok

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


graphs = {}


def captured(data):
    still = [t.clone() for t in data]
    copy(*still)  # compiled before anything is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        copy(*still)
    return graph, still


def custom_kernel(data):
    *inputs, out = data
    if out.shape not in graphs:
        graphs[out.shape] = captured(data)
    graph, (*still_inputs, still_out) = graphs[out.shape]
    for still, now in zip(still_inputs, inputs):
        still.copy_(now)
    graph.replay()
    return out.copy_(still_out)
