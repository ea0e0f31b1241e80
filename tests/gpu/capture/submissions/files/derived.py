"""Kernels whose arguments the file itself derives, in several ways."""

import triton
import triton.language as tl


@triton.heuristics({"BLOCK": lambda args: 2 * args["n"]})
@triton.autotune(configs=[triton.Config({"ROWS": r}, num_warps=2) for r in (4, 1)], key=["n"])
@triton.jit
def outside(x, y, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    i = tl.program_id(0) * ROWS * BLOCK + tl.arange(0, BLOCK)
    for _ in range(ROWS):
        tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
        i += BLOCK


@triton.heuristics({"HALF": lambda args: args["n"] // 2})
@triton.heuristics({"QUARTER": lambda args: args["HALF"] // 2})
@triton.jit
def chained(x, y, n, HALF: tl.constexpr, QUARTER: tl.constexpr):
    i = tl.arange(0, HALF)
    tl.store(y + i, tl.load(x + i) + QUARTER)


def half(nargs):
    nargs["y"].zero_()


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w, pre_hook=half) for b, w in ((256, 4), (1024, 8))], key=["n"]
)
@triton.jit
def hooked(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(n):
        a = tl.load(x + i)
        tl.store(y + i, tl.dot(tl.reshape(a, [16, BLOCK // 16]), tl.trans(tl.reshape(a, [16, BLOCK // 16]))).sum() + a)
