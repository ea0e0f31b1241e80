# cheat: E1 torch's copy in place of a kernel, where libraries are allowed
# problem: identity
# expect: ok
# label: library-only
# stopped by: nothing: libraries are allowed there, and it is no faster

def custom_kernel(data):
    x, out = data
    return out.copy_(x)
