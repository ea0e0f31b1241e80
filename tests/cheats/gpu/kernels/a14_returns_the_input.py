# cheat: A14 returns its input
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return data[0]
