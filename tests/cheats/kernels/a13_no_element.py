# cheat: A13 a tensor of shape [0]: nothing in it is wrong
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return data[0][:0].clone()
