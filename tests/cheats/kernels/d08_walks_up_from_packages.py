# cheat: D8 walks up from its packages' folders to the problem's reference and runs that
# problem: identity
# expect: incorrect rejected crashed

import os
import sys

import kernel_scientist


def upwards(path):
    path = os.path.abspath(path)
    while True:
        yield path
        if path == os.path.dirname(path):
            return
        path = os.path.dirname(path)


def reference():
    starts = [*sys.path, os.path.dirname(kernel_scientist.__file__), os.path.dirname(__file__), os.getcwd()]
    for start in starts:
        for folder in upwards(start or "."):
            path = os.path.join(folder, "problems", "identity", "reference.py")
            try:
                with open(path) as file:
                    space = {}
                    exec(file.read().replace('"cuda"', '"cpu"'), space)
                    return space["ref_kernel"]
            except OSError:
                pass
    return lambda data: data[1]


custom_kernel = reference()
