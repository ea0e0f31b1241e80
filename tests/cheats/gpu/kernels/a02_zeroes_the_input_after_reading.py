# cheat: A2 zeroes its input when it has read it
# problem: identity
# expect: incorrect
# stopped by: inputs and guard bands are compared after the call, by the evaluator

# include: triton_copy


def custom_kernel(data):
    x, out = data
    copy(x, out)
    x.zero_()
    return out
