# cheat: A14 the right values in the host's memory
# problem: identity
# expect: incorrect rejected crashed
# stopped by: the output's device is checked

def custom_kernel(data):
    return data[0].cpu()
