"""A product with an activation and a norm, for inputs that no problem here has."""

import torch, triton, triton.language as tl
@triton.jit
def gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071))
@triton.autotune(configs=[triton.Config({"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=8, num_stages=2)], key=["M"])
@triton.jit
def mm(A, B, C, M, N, K, sam, sak, sbk, sbn, scm, scn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, ACT: tl.constexpr = True):
    pm, pn = tl.program_id(0), tl.program_id(1)
    rm = pm * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pn * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    pa = A + rm[:, None] * sam + rk[None, :] * sak
    pb = B + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BLOCK_K * sak
        pb += BLOCK_K * sbk
    if ACT:
        acc = gelu(acc)
    tl.store(C + rm[:, None] * scm + rn[None, :] * scn, acc.to(tl.bfloat16))
@triton.jit
def norm(x_ptr, w_ptr, eps, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(w_ptr + i, x / tl.sqrt(tl.sum(x * x) / n + eps), mask=i < n)
def custom_kernel(data):
    q, k, v, cfg, more, evenmore = data
    return None
