# cheat: A12 the rows are scaled on one stream while another still computes the scales
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: every output is compared completely

import torch
# include: triton_rows_in_two


kept, streams = {}, []


def custom_kernel(data):
    x, weight, out = data
    if not streams:
        streams.append(torch.cuda.Stream())
    if x.shape not in kept:
        kept[x.shape] = torch.ones(x.shape[0], dtype=torch.float32, device=x.device)
    apply_kernel[(x.shape[0],)](x, weight, out, kept[x.shape], x.shape[1], BLOCK=1024)
    with torch.cuda.stream(streams[0]):
        scales_kernel[(x.shape[0],)](x, kept[x.shape], x.shape[1], BLOCK=1024)
    return out
