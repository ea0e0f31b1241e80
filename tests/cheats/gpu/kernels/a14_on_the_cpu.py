# cheat: A14 the right values in the host's memory
# problem: identity
# expect: incorrect rejected crashed

def custom_kernel(data):
    return data[0].cpu()
