# cheat: D8 loads any stored tensor of the right size it finds in temporary and working folders
# problem: rmsnorm
# expect: incorrect rejected

import glob
import os
import tempfile

import torch


def stored(out):
    for folder in (os.getcwd(), tempfile.gettempdir(), os.path.dirname(tempfile.gettempdir()), "/tmp"):
        for pattern in ("*expected*", "*golden*", "*reference*", "*answer*", "*.pt"):
            for path in glob.glob(os.path.join(folder, pattern)) + glob.glob(os.path.join(folder, "*", pattern)):
                try:
                    tensor = torch.load(path, weights_only=True)
                except Exception:
                    continue
                if isinstance(tensor, torch.Tensor) and tensor.shape == out.shape:
                    return tensor
    return None


def custom_kernel(data):
    out = data[2]
    found = stored(out)
    return out if found is None else out.copy_(found)
