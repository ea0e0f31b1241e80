# cheat: A13 a Python number
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return float(data[0][0])
