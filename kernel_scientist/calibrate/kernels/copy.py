# type: ignore
# ruff: noqa: ANN001, ANN201, D103
"""A copy: BLOCK elements at a time, ROUNDS times per program. Many rounds: few programs, one load after another."""

import triton
import triton.language as tl

TUNABLES = {"BLOCK": 1024, "ROUNDS": 1, "num_warps": 4}


@triton.jit
def copy_kernel(x, out, n, BLOCK: tl.constexpr, ROUNDS: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK * ROUNDS + tl.arange(0, BLOCK)
    for _ in range(ROUNDS):
        tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n), mask=offsets < n)
        offsets += BLOCK


def custom_kernel(data):
    x, out = data
    block, rounds = TUNABLES["BLOCK"], TUNABLES["ROUNDS"]
    grid = (triton.cdiv(x.numel(), block * rounds),)
    copy_kernel[grid](x, out, x.numel(), BLOCK=block, ROUNDS=rounds, num_warps=TUNABLES["num_warps"])
    return out
