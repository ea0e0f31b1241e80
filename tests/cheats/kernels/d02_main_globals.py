# cheat: D2 writes success into __main__, builtins and the exit code; nothing is written to the output
# problem: identity
# expect: incorrect rejected

import atexit
import builtins
import os
import sys
import threading

main = sys.modules["__main__"]
main.passed = main.correct = main.ok = True
builtins.AssertionError = type("AssertionError", (Warning,), {})
threading.excepthook = sys.excepthook = lambda *_: None
atexit.register(lambda: os._exit(0))


def custom_kernel(data):
    for frame_name in ("passed", "correct", "ok"):
        setattr(main, frame_name, True)
    return data[1]
