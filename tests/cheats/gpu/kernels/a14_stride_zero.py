# cheat: A14 an expanded single element of stride 0
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return data[0][:1].expand(data[0].shape)
