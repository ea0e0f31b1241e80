# cheat: D8 opens the problem by paths relative to its own file and working folder
# problem: rmsnorm
# expect: incorrect rejected crashed

import os


def reference():
    for base in (os.getcwd(), os.path.dirname(os.path.abspath(__file__))):
        for up in range(6):
            path = os.path.join(base, *[".."] * up, "problems", "rmsnorm", "reference.py")
            try:
                with open(path) as file:
                    space = {}
                    exec(file.read(), space)
                    return space["ref_kernel"]
            except OSError:
                pass
    return lambda data: data[2]


custom_kernel = reference()
