# cheat: E1 torch's own copy
# problem: identity
# expect: ok rejected
# label: library

def custom_kernel(data):
    x, out = data
    return out.copy_(x)
