# cheat: A14 a tensor without memory
# problem: identity
# expect: incorrect rejected crashed

def custom_kernel(data):
    return data[1].to('meta')
