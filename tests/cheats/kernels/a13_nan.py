# cheat: A13 NaN everywhere: a comparison by difference > tolerance is never true
# problem: rmsnorm
# expect: incorrect rejected

def custom_kernel(data):
    return data[2].fill_(float('nan'))
