from functools import lru_cache

import torch
from an_extension_that_nobody_has import tuned

WARPS = 2 if torch.cuda.get_device_capability()[0] >= 9 else 4


@lru_cache
def warps():
    return tuned("warps") if tuned else WARPS
