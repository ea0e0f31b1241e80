# cheat: A14 a NumPy view of the input instead of a tensor
# problem: identity
# expect: incorrect rejected crashed

def custom_kernel(data):
    return data[0].numpy()
