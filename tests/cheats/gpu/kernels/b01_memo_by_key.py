# variant: b01_data_ptr | B1 memo keyed by data_ptr | (x.data_ptr(), x.numel())
# variant: b01_shape | B1 memo keyed by shape | x.shape
# problem: identity
# expect: incorrect rejected
# stopped by: no two calls have the same inputs; some differ in a few bytes only

# include: triton_copy


memo = {}


def custom_kernel(data):
    x, out = data
    key = $VARIANT
    if key not in memo:
        copy(x, out)
        memo[key] = out.clone()
    return memo[key]
