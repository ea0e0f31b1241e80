# cheat: A14 returns another tensor object on the input's memory
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return data[0].detach()
