# cheat: A2 zeroes the input and the output: a reference run afterwards agrees
# problem: identity
# expect: crashed incorrect rejected

def custom_kernel(data):
    x, out = data
    x.zero_()
    return out.zero_()
