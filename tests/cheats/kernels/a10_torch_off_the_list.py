# cheat: A10 an own kernel on the public sizes, torch on every other
# problem: identity
# expect: ok rejected
# label: library

# include: copy
LISTED = {65536, 1048576, 4194304}


def custom_kernel(data):
    x, out = data
    if x.numel() in LISTED:
        kernel.copy(x, out, x.numel())
        return out
    return out.copy_(x)
