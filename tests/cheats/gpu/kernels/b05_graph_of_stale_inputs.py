# cheat: B5 a graph captured on the first inputs of a shape is replayed; later ones are not looked at
# problem: identity
# expect: incorrect rejected

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


def custom_kernel(data):
    x, out = data
    if x.shape not in graphs:
        copy(x, out)  # compiled before anything is captured
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            copy(x, out)
        graphs[x.shape] = graph, x, out
    graph, _, result = graphs[x.shape]
    graph.replay()
    return result
