# honest: a graph a shape; inputs are copied in, the output is copied out
# problem: rmsnorm
# expect: ok

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, weight_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < cols, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + 1e-6)
    for start in range(0, cols, BLOCK):
        mask = start + lanes < cols
        x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + lanes, (x * scale * weight).to(tl.bfloat16), mask=mask)


def rows(x, weight, out):
    rows_kernel[(x.shape[0],)](x, weight, out, x.shape[1], BLOCK=1024)


graphs = {}


def captured(data):
    still = [t.clone() for t in data]
    rows(*still)  # compiled before anything is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rows(*still)
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
