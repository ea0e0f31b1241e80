# cheat: B5 the inputs are copied in and the graph is replayed, but what is returned is the last replay's
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: no two calls have the same inputs; some differ in a few bytes only

import torch
# include: triton_rows


graphs = {}


def custom_kernel(data):
    x, weight, out = data
    if x.shape not in graphs:
        rows(x, weight, out)
        still = [t.clone() for t in data]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            rows(*still)
        graph.replay()
        graphs[x.shape] = graph, still
    graph, (still_x, still_weight, still_out) = graphs[x.shape]
    out.copy_(still_out)
    still_x.copy_(x)
    still_weight.copy_(weight)
    graph.replay()
    return out
