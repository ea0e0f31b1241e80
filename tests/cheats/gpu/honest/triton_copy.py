# honest: nothing but a launch
# problem: identity
# expect: ok

# include: triton_copy


def custom_kernel(data):
    x, out = data
    copy(x, out)
    return out
