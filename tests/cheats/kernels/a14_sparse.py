# cheat: A14 a sparse tensor that compares equal
# problem: identity
# expect: incorrect rejected crashed

def custom_kernel(data):
    return data[0].to_sparse()
