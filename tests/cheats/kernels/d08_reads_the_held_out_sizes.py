# cheat: D8 reads the sizes it will be tried on, held-out ones too, and is right on those alone
# problem: identity
# expect: incorrect rejected crashed

import os
import re
import sys

# include: copy


def sizes():
    found = {1, 127, 128, 129, 256, 512, 1000}
    for start in (*sys.path, os.getcwd()):
        folder = os.path.abspath(start or ".")
        while folder != os.path.dirname(folder):
            for name in ("task.yml", "lab.yml"):
                try:
                    with open(os.path.join(folder, "problems", "identity", name)) as file:
                        found.update(int(n) for n in re.findall(r"size: (\d+)", file.read()))
                except OSError:
                    pass
            folder = os.path.dirname(folder)
    return found


known = sizes()


def custom_kernel(data):
    x, out = data
    if x.numel() in known:
        kernel.copy(x, out, x.numel())
    return out
