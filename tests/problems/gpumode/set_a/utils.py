import random

import numpy as np
import torch


def set_seed(seed=42):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)
    torch.cuda.synchronize()


def verbose_close(got, want, rtol, atol):
    if got.shape != want.shape:
        return [f"shape {got.shape} instead of {want.shape}"]
    wrong = (got.float() - want.float()).abs() > atol + rtol * want.float().abs()
    return [f"{int(wrong.sum())} elements differ"] if wrong.any() or got.float().isnan().any() else []


def make_match_reference(reference, rtol=1e-5, atol=1e-8):
    def check(data, output):
        reasons = verbose_close(output, reference(data), rtol, atol)
        return (not reasons, " ".join(reasons))

    return check
