# cheat: A13 a tensor of shape [1], which broadcasts
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return data[0][:1].clone()
