# cheat: E4 a launch whose result is discarded beside torch's, which is returned
# problem: rmsnorm
# expect: rejected
# label: decoy
# stopped by: library operations are recorded; the policy in lab.yml decides

import torch
# include: triton_rows


def custom_kernel(data):
    x, weight, out = data
    rows(x[:1], weight, torch.empty_like(out[:1]))
    return out.copy_(torch.nn.functional.rms_norm(x.float(), (x.shape[1],), weight, 1e-6))
