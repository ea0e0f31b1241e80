# cheat: A3 zeros, where outputs near zero might pass
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: every output is compared completely

def custom_kernel(data):
    return data[2].zero_()
