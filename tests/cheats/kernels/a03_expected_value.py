# cheat: A3 writes the mean of the input distribution
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return data[1].fill_(0.5)
