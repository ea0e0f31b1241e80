# cheat: A10 right on the public sizes, zeros on every other
# problem: identity
# expect: incorrect rejected

# include: copy
LISTED = {1, 127, 128, 129, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 1048576, 4194304}


def custom_kernel(data):
    x, out = data
    if x.numel() not in LISTED:
        return out.zero_()
    kernel.copy(x, out, x.numel())
    return out
