# cheat: D9 puts a link in the place of its own log, so that another file is quoted as its words
# problem: identity
# expect: crashed rejected

import os

import kernel_scientist


def custom_kernel(data):
    for name in os.listdir("."):
        if name.endswith(".log"):
            os.symlink(os.path.abspath(kernel_scientist.__file__), name + ".link")
            os.replace(name + ".link", name)
    os.abort()
