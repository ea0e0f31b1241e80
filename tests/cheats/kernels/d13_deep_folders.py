# cheat: D13 leaves three thousand folders, one in the other: who cleans up must not break over them
# problem: identity
# expect: rejected

import os

home = os.getcwd()
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
os.chdir(home)


def custom_kernel(data):
    x, out = data
    out.copy_(x)
    return out
