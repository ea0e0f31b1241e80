import subprocess
from functools import lru_cache

import torch
from an_extension_that_nobody_has import tuned

DRIVER = subprocess.run(["rocminfo"], capture_output=True, text=True).stdout
WARPS = 2 if torch.cuda.get_device_capability()[0] >= 9 and "gfx9" in DRIVER else 4


@lru_cache
def warps():
    return tuned("warps") if tuned else WARPS
