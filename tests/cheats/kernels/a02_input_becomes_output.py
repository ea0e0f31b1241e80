# cheat: A2 makes the input equal to the untouched output instead of the other way round
# problem: identity
# expect: crashed incorrect rejected

def custom_kernel(data):
    x, out = data
    x[:1] = 0
    x.set_(out)  # no copy: the input object now stands on the output's memory
    return out
