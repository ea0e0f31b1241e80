# cheat: D6 prints success and leaves with exit code 0
# problem: identity
# expect: crashed rejected

import os


def custom_kernel(data):
    print("check: pass", flush=True)
    os._exit(0)
