# cheat: B5 records the first call per shape with its pointers and replays that, whatever the arguments
# problem: rmsnorm
# expect: incorrect rejected

import functools

# include: rows
graphs = {}


def custom_kernel(data):
    x, weight, out = data
    if x.shape not in graphs:
        graphs[x.shape] = functools.partial(kernel.rmsnorm, x, weight, out, *x.shape), out
    launch, result = graphs[x.shape]
    if not getattr(result, "done", False):
        launch()
        result.done = True  # same arguments, same result: a replay that may be skipped
    return result
