# cheat: A14 points the output object at the input's memory and returns the output object
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    x, out = data
    out.data = x
    return out
