# cheat: D9 puts a named pipe in the place of its own log, so that who reads the log waits for ever
# problem: identity
# expect: crashed rejected

import os


def custom_kernel(data):
    for name in os.listdir("."):
        if name.endswith(".log"):
            os.mkfifo(name + ".pipe")
            os.replace(name + ".pipe", name)
    os.abort()
