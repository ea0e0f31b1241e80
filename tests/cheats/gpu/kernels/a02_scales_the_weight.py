# cheat: A2 folds its scale into the weight and leaves the weight changed
# problem: rmsnorm
# expect: incorrect
# stopped by: inputs and guard bands are compared after the call, by the evaluator

# include: triton_rows


def custom_kernel(data):
    x, weight, out = data
    rows(x, weight, out)
    weight.mul_(0.5)
    return out
