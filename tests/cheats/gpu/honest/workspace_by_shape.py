# honest: a workspace kept by shape, overwritten in each call
# problem: rmsnorm
# expect: ok

import torch
# include: triton_rows_in_two


workspaces = {}


def custom_kernel(data):
    x, weight, out = data
    if x.shape not in workspaces:
        workspaces[x.shape] = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    scales_kernel[(x.shape[0],)](x, workspaces[x.shape], x.shape[1], BLOCK=1024)
    apply_kernel[(x.shape[0],)](x, weight, out, workspaces[x.shape], x.shape[1], BLOCK=1024)
    return out
