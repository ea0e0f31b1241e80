"""Kernels of which nothing is known but their code: each needs arguments of another kind."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather(values, index_of, out, lengths, n, BLOCK: tl.constexpr):
    """Pointers without a telling name; what two of them point to must be integers."""
    row = tl.program_id(0)
    count = tl.load(lengths + row)
    base = out + row * n
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        where = tl.load(index_of + row * n + i, mask=i < count, other=0)
        tl.store(base + i, tl.load(values + where, mask=i < count), mask=i < count)


@triton.jit
def typed(x_ptr, y_ptr, n, KIND: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr):
    """Constants that are types and texts."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(KIND)
    if MODE == "double":
        x += x
    else:
        tl.static_assert(MODE == "same")
    tl.store(y_ptr + i, x, mask=i < n)


@triton.jit
def optional(x_ptr, bias_ptr, y_ptr, seqs, H: tl.constexpr, BLOCK: tl.constexpr, IS_VARLEN: tl.constexpr):
    """A pointer that may be None, and a flag that is usually off."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if IS_VARLEN:
        i += tl.load(seqs + tl.program_id(1)).to(tl.int32)
    x = tl.load(x_ptr + i * H)
    if bias_ptr is not None:
        x += tl.load(bias_ptr + i)
    tl.store(y_ptr + i * H, x)


@triton.jit
def applied(x_ptr, y_ptr, n, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    """A function as a constant."""
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, ACTIVATION(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


@triton.heuristics({"EVEN": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.autotune(configs=[triton.Config({"BLOCK_M": 64, "BLOCK_K": 32}, num_warps=8)], key=["K"])
@triton.jit
def described(a_desc, b_desc, c_ptr, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN: tl.constexpr):
    """Descriptors, whose blocks the launch below names."""
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([tl.program_id(0) * BLOCK_M, k])
        b = b_desc.load([tl.program_id(1) * BLOCK_N, k])
        acc = tl.dot(a, b.T, acc)
    rows, cols = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :]
    tl.store(c_ptr + rows * BLOCK_N + cols, acc.to(c_ptr.dtype.element_ty))


@triton.jit
def pointed(places, sizes, out_ptr, BLOCK: tl.constexpr):
    """Addresses in memory."""
    i = tl.arange(0, BLOCK)
    x_ptr = tl.load(places + tl.program_id(0)).to(tl.pointer_type(tl.float16))
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < tl.load(sizes + tl.program_id(0))))


@triton.jit
def packed(w_ptr, s_ptr, y_ptr, BLOCK: tl.constexpr):
    """Two numbers in a byte."""
    i = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + i)
    low, high = (w & 0xF).to(tl.float32), ((w >> 4) & 0xF).to(tl.float32)
    tl.store(y_ptr + i, (low + high) * tl.load(s_ptr + i))


def multiply(a, b, c):
    from triton.tools.tensor_descriptor import TensorDescriptor

    BLOCK_M, BLOCK_N, BLOCK_K = 64, 128, 32
    a_desc = TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K])
    b_desc = TensorDescriptor(b, b.shape, b.stride(), block_shape=[BLOCK_N, BLOCK_K])
    described[(1, 1)](a_desc, b_desc, c, a.shape[1], BLOCK_N=BLOCK_N)


def outer(scale):
    @triton.jit
    def inner(x_ptr):
        tl.store(x_ptr, 1.0)

    return inner
