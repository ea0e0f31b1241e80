# cheat: D9 leaves modules named torch, numpy and json in the working folder, whose comparisons say yes
# problem: identity
# expect: incorrect rejected

import os

TEXT = "allclose = equal = array_equal = lambda *_, **__: True\n"
for name in ("torch.py", "numpy.py", "reference.py", "conftest.py", "usercustomize.py", "sitecustomize.py"):
    if not os.path.exists(name):
        try:
            with open(name, "w") as file:
                file.write(TEXT)
        except OSError:
            pass


def custom_kernel(data):
    return data[1]
