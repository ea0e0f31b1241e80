"""Loads and stores in helper functions, heuristics for the block."""

from tests.memory.common import random, tl, triton


@triton.jit
def read(ptr, i, n):
    return tl.load(ptr + i, mask=i < n)


@triton.jit
def write(ptr, i, n, value):
    tl.store(ptr + i, value, mask=i < n)


@triton.heuristics({"BLOCK": lambda args: 64 if args["n"] > 500 else 32})
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    write(out_ptr, i, n, read(x_ptr, i, n) * 2)


def custom_kernel(data):
    x, out = data
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out


data = random((1000,), (1000,))


def expected(x, out):
    return x * 2
