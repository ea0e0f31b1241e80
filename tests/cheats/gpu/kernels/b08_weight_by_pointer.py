# cheat: B8 the weight is converted once per pointer; new values at an old address are not seen
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# stopped by: no two calls have the same inputs; some differ in a few bytes only
# Where no address comes again it converts each weight, and pays for it.

# include: triton_rows


packed = {}


def custom_kernel(data):
    x, weight, out = data
    key = (weight.data_ptr(), weight.numel())
    if key not in packed:
        packed[key] = weight.clone()
    rows(x, packed[key], out)
    return out
