# cheat: A3 zeros, where outputs near zero might pass
# problem: rmsnorm
# expect: incorrect rejected

def custom_kernel(data):
    return data[2].zero_()
