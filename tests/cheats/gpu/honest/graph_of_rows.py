# honest: a graph a shape; inputs are copied in, the output is copied out
# problem: rmsnorm
# expect: ok

import torch
# include: triton_rows


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
