# cheat: E1 torch's copy in place of a kernel, where libraries are allowed
# problem: identity
# expect: ok
# label: library-only

def custom_kernel(data):
    x, out = data
    return out.copy_(x)
