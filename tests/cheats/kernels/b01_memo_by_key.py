# variant: b01_data_ptr | B1 memo keyed by data_ptr | x.data_ptr()
# variant: b01_id | B1 memo keyed by id() of the input | id(x)
# variant: b01_version | B1 memo keyed by pointer and _version: a raw write does not count one up | x.data_ptr(), x._version
# problem: identity
# expect: incorrect rejected

# include: copy
memo = {}


def custom_kernel(data):
    x, out = data
    key = ($VARIANT, x.numel())
    if key not in memo:
        kernel.copy(x, out, x.numel())
        memo[key] = out.clone()
    return memo[key]
