# cheat: B5 a graph captured on the first inputs of a shape is replayed; later ones are not looked at
# problem: identity
# expect: incorrect rejected
# stopped by: no two calls have the same inputs; some differ in a few bytes only

import torch
# include: triton_copy


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
