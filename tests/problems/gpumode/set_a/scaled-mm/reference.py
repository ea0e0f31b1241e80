import torch
from utils import make_match_reference

BLOCK = 128


def generate_input(m, n, k, seed):
    gen = torch.Generator(device="cuda").manual_seed(seed)
    a = torch.randn((k, m), dtype=torch.bfloat16, device="cuda", generator=gen).to(torch.float8_e4m3fnuz)
    b = torch.randn((k, n), dtype=torch.bfloat16, device="cuda", generator=gen).to(torch.float8_e4m3fnuz)
    rows = torch.randn((k // BLOCK, m), dtype=torch.float32, device="cuda", generator=gen)
    c = torch.zeros((m, n), dtype=torch.bfloat16, device="cuda")
    return a.T, b.T, rows.T, c


def ref_kernel(data):
    a, b, rows, c = data
    m, k = a.shape
    scale = rows.unsqueeze(-1).repeat(1, 1, BLOCK).view(m, rows.shape[1] * BLOCK)
    wide = a.to(torch.float32) * scale
    c[...] = (wide @ b.to(torch.float32).T).to(torch.bfloat16)
    return c


check_implementation = make_match_reference(ref_kernel, rtol=2e-2, atol=1e-3)
