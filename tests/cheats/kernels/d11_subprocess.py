# cheat: D11 runs another program for the work
# problem: identity
# expect: rejected crashed

import subprocess
import sys

# include: copy


def custom_kernel(data):
    x, out = data
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    kernel.copy(x, out, x.numel())
    return out
