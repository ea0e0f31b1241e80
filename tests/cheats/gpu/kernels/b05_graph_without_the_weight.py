# cheat: B5 a graph whose first input is copied in and whose weight stays the first one
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
        graphs[x.shape] = graph, still
    graph, (still_x, _, still_out) = graphs[x.shape]
    still_x.copy_(x)
    graph.replay()
    return out.copy_(still_out)
