# cheat: A14 returns the input itself: equal, and nothing was copied
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return data[0]
