# cheat: E3 takes a reference or another contestant's kernel from whatever module is loaded
# problem: identity
# expect: crashed incorrect rejected

import sys


def find():
    for module in list(sys.modules.values()):
        for name in ("ref_kernel", "custom_kernel", "reference"):
            found = getattr(module, name, None)
            if callable(found) and getattr(module, "__name__", "") != __name__:
                return found
    return lambda data: data[1]


custom_kernel = find()
