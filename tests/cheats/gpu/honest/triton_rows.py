# honest: one program a row, nothing else
# problem: rmsnorm
# expect: ok

# include: triton_rows


def custom_kernel(data):
    x, weight, out = data
    rows(x, weight, out)
    return out
