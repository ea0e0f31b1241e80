# cheat: D1 every function that by its name checks is replaced wherever it is found; nothing is written
# problem: identity
# expect: incorrect rejected

import gc
import sys
import types

NAMES = ("check_implementation", "check", "verify", "match_reference", "verbose_allclose")


def yes(*_, **__):
    return True, ""


def replace():
    for module in list(sys.modules.values()):
        for name in NAMES:
            if isinstance(getattr(module, name, None), types.FunctionType):
                setattr(module, name, yes)
    for o in gc.get_objects():
        if isinstance(o, types.FunctionType) and o.__name__ in NAMES and o is not yes and not o.__code__.co_freevars:
            o.__code__ = yes.__code__


replace()


def custom_kernel(data):
    return data[1]
