# cheat: A13 the right values as float64
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return data[0].double()
