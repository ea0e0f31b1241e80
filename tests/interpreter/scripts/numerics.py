"""What `tests/test_numerics.py` runs in a process of its own, where Triton interprets: each check_* against torch."""

import json
import sys
import traceback

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.interpreter import numerics
from tests.interpreter.dtypes import TORCH, narrow, widen

FP8 = {name: dtype for name, dtype in TORCH.items() if name != "bf16"}
FLOATS = [torch.float32, torch.float16, torch.bfloat16]


@triton.jit
def convert(x_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes).to(out_ptr.dtype.element_ty))


@triton.jit
def arithmetic(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    x, y = tl.load(x_ptr + lanes), tl.load(y_ptr + lanes)
    tl.store(out_ptr + 0 * N + lanes, x + y)
    tl.store(out_ptr + 1 * N + lanes, x * y)
    tl.store(out_ptr + 2 * N + lanes, x - y)
    tl.store(out_ptr + 3 * N + lanes, tl.maximum(x, y))
    tl.store(out_ptr + 4 * N + lanes, tl.minimum(x, y))
    tl.store(out_ptr + 5 * N + lanes, -x)
    tl.store(out_ptr + 6 * N + lanes, tl.abs(x))
    tl.store(out_ptr + 7 * N + lanes, x * 1.5 + 2)
    tl.store(out_ptr + 8 * N + lanes, tl.where(x < y, x, y))
    tl.store(out_ptr + 9 * N + lanes, x / y)
    tl.store(out_ptr + 10 * N + lanes, tl.exp(x.to(tl.float32)))
    tl.store(out_ptr + 11 * N + lanes, tl.full((N,), 3.3, out_ptr.dtype.element_ty))
    tl.store(out_ptr + 12 * N + lanes, (x < y).to(out_ptr.dtype.element_ty))
    tl.store(out_ptr + 13 * N + lanes, tl.fma(x, y, x))


@triton.jit
def multiply(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))


@triton.jit
def total(x, y):
    return x + y


@triton.jit
def reduce(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(out_ptr + m, tl.sum(x, axis=1))
    tl.store(out_ptr + M + m, tl.max(x, axis=1))
    tl.store(out_ptr + 2 * M + m, tl.min(x, axis=1))
    tl.store(out_ptr + 3 * M + m, tl.reduce(x, 1, total))
    tl.store(out_ptr + 4 * M + m, tl.argmax(x, axis=1))
    tl.store(out_ptr + 5 * M + m, tl.sum(tl.where(n[None, :] == N - 1, tl.cumsum(x, axis=1), 0.0), axis=1))
    tl.store(out_ptr + 6 * M + m, tl.sum(x))


@triton.jit
def accumulate(x_ptr, index_ptr, out_ptr, old_ptr, size, N: tl.constexpr):
    lanes = tl.arange(0, N)
    old = tl.atomic_add(out_ptr + tl.load(index_ptr + lanes), tl.load(x_ptr + lanes), mask=lanes < size)
    tl.store(old_ptr + lanes, old)


@triton.jit
def exchange(x_ptr, out_ptr, old_ptr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    tl.store(old_ptr + lanes, tl.atomic_xchg(out_ptr + lanes, tl.load(x_ptr + lanes)))


@triton.jit
def library(x_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    x = tl.load(x_ptr + lanes)
    tl.store(out_ptr + 0 * N + lanes, libdevice.tanh(x))
    tl.store(out_ptr + 1 * N + lanes, libdevice.rsqrt(x))
    tl.store(out_ptr + 2 * N + lanes, libdevice.rint(x))
    tl.store(out_ptr + 3 * N + lanes, libdevice.fast_expf(x))
    tl.store(out_ptr + 4 * N + lanes, libdevice.erf(x))
    tl.store(out_ptr + 5 * N + lanes, libdevice.pow(x, x))
    tl.store(out_ptr + 6 * N + lanes, libdevice.log1p(x))
    tl.store(out_ptr + 7 * N + lanes, libdevice.atan2(x, x * x))
    tl.store(out_ptr + 8 * N + lanes, tl.erf(x))
    tl.store(out_ptr + 9 * N + lanes, tl.extra.hip.libdevice.fast_tanhf(x))
    tl.store(out_ptr + 10 * N + lanes, tl.extra.cuda.libdevice.fast_logf(x))
    tl.store(out_ptr + 11 * N + lanes, tl.extra.cuda.libdevice.div_rn(x, x + 1))


@triton.jit
def unlike_numbers(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    x, y = tl.load(x_ptr + lanes), tl.load(y_ptr + lanes)
    tl.store(out_ptr + lanes, tl.maximum(x, y))
    tl.store(out_ptr + N + lanes, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out_ptr + 2 * N + lanes, tl.minimum(x, y))
    tl.store(out_ptr + 3 * N + lanes, tl.clamp(x, -1.0, 1.0))


@triton.jit
def truncate(x_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes).to(out_ptr.dtype.element_ty, fp_downcast_rounding="rtz"))


@triton.jit
def scaled(a_ptr, sa_ptr, b_ptr, sb_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, F: tl.constexpr):
    m, n, k, s = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)
    P: tl.constexpr = 2 if F == "e2m1" else 1
    kp = tl.arange(0, K // P)
    a = tl.load(a_ptr + m[:, None] * (K // P) + kp[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    sa = tl.load(sa_ptr + m[:, None] * (K // 32) + s[None, :])
    sb = tl.load(sb_ptr + n[:, None] * (K // 32) + s[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot_scaled(a, sa, F, b, sb, "e5m2"))


@triton.jit
def descriptor(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    rows, cols = tl.arange(0, BM), tl.arange(0, BN)
    value = x.load([0, 0]).to(tl.float32)
    tl.store(out_ptr + rows[:, None] * BN + cols[None, :], value)


def interesting(size: int = 4096, seed: int = 0) -> torch.Tensor:
    """Values of every magnitude, ties, zeros, subnormals of the small formats, infinities."""
    gen = torch.Generator().manual_seed(seed)
    spread = torch.randn(size, generator=gen) * torch.exp2(torch.randint(-24, 18, (size,), generator=gen).float())
    spread[:8] = torch.tensor([0.0, -0.0, 1.0, torch.inf, -torch.inf, torch.nan, 2.0**-17, 3.0e38])
    eighths = torch.arange(size // 4) / 32  # ties of fp8
    spread[8 : 8 + eighths.numel()] = eighths
    return spread


def same(got: torch.Tensor, want: torch.Tensor, what: str = "") -> None:
    """Equal bit for bit, NaN for NaN."""
    got, want = got.to(torch.float64), want.to(torch.float64)
    wrong = ~((got == want) | (got.isnan() & want.isnan()))
    assert not wrong.any(), (
        f"{what}{int(wrong.sum())} differ: {got[wrong][:5].tolist()} instead of {want[wrong][:5].tolist()}"
    )


def close(got: torch.Tensor, want: torch.Tensor, rtol: float) -> None:
    torch.testing.assert_close(got.double(), want.double(), rtol=rtol, atol=rtol, equal_nan=True)


def expected(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The AMD backend's conversion: torch's, but the OCP formats saturate."""
    if dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        most = torch.finfo(dtype).max
        x = x.float().clamp(-most, most)
    return x.to(dtype)


def check_widening_fp8_is_exact():
    for dtype in FP8.values():
        x = torch.arange(256, dtype=torch.uint8).view(dtype)
        for to in FLOATS:
            out = torch.empty(256, dtype=to)
            convert[(1,)](x, out, N=256)
            same(out, x.to(to))


def check_widening_bf16_is_exact():
    x = torch.arange(65536).to(torch.uint16).view(torch.bfloat16)
    out = torch.empty(65536)
    convert[(1,)](x, out, N=65536)
    same(out, x.float())


def check_narrowing_rounds_to_nearest_even():
    for source in FLOATS:
        x = interesting().to(source)
        for dtype in [*TORCH.values(), torch.float16]:
            out = torch.empty(x.numel(), dtype=dtype)
            convert[(1,)](x, out, N=x.numel())
            same(out, expected(x, dtype))


def check_fnuz_overflow_is_nan_and_ocp_saturates():
    x = torch.tensor([1e6, -1e6, torch.inf, torch.nan])
    for name, want in {"fp8e4b8": [torch.nan] * 4, "fp8e4nv": [448.0, -448.0, 448.0, torch.nan]}.items():
        out = torch.empty(4, dtype=TORCH[name])
        convert[(1,)](x, out, N=4)
        same(out, torch.tensor(want))


def check_fp32_to_bf16_is_not_truncated():
    x = torch.tensor([1 + 2.0**-8 + 2.0**-9, -(1 + 3 * 2.0**-8)])
    out = torch.empty(2, dtype=torch.bfloat16)
    convert[(1,)](x, out, N=2)
    same(out, x.to(torch.bfloat16))


def check_rounding_towards_zero():
    x = interesting()
    x = x[x.abs() < 100]
    x = x[: 1 << (x.numel().bit_length() - 1)]
    for dtype in TORCH.values():
        out = torch.empty(x.numel(), dtype=dtype)
        truncate[(1,)](x, out, N=x.numel())
        back, nearest = out.float(), x.to(dtype).float()
        assert (back.abs() <= x.abs()).all() and ((back == nearest) | (nearest.abs() > x.abs())).all()


def check_fp8_formats_convert_among_each_other():
    for source in FP8.values():
        x = torch.arange(256, dtype=torch.uint8).view(source)
        for dtype in FP8.values():
            if dtype != source:
                out = torch.empty(256, dtype=torch.float32)
                middle = torch.empty(256, dtype=dtype)
                convert[(1,)](x, out, N=256)
                convert[(1,)](out, middle, N=256)
                same(middle, expected(x.float(), dtype))


def check_e4b15_round_trip():
    bits = np.arange(256, dtype=np.uint8)
    values = widen(bits, "fp8e4b15")
    assert (widen(narrow(values, "fp8e4b15"), "fp8e4b15") == values).all() and values.max() == 1.875


def check_integers_and_bf16():
    x = torch.randint(-(2**20), 2**20, (1024,), dtype=torch.int32)
    out, back = torch.empty(1024, dtype=torch.bfloat16), torch.empty(1024, dtype=torch.int32)
    convert[(1,)](x, out, N=1024)
    same(out, x.to(torch.bfloat16))
    convert[(1,)](out, back, N=1024)
    same(back, out.to(torch.int32))
    flags = torch.empty(1024, dtype=torch.bool)
    convert[(1,)](out, flags, N=1024)
    same(flags, out != 0)


def check_bf16_arithmetic():
    x, y = interesting(1024, 1).to(torch.bfloat16), interesting(1024, 2).to(torch.bfloat16)
    out = torch.empty(14, 1024, dtype=torch.bfloat16)
    arithmetic[(1,)](x, y, out, N=1024)
    number = torch.where(x.isnan(), y, x), torch.where(y.isnan(), x, y)
    wanted = [x + y, x * y, x - y, torch.maximum(*number), torch.minimum(*number), -x, x.abs()]
    scaled_x = (x.float() * 1.5).to(torch.bfloat16)
    wanted += [(scaled_x.float() + 2).to(torch.bfloat16), torch.where(x < y, x, y)]
    wanted += [(x.float() / y.float()).to(torch.bfloat16), x.float().exp().to(torch.bfloat16)]
    wanted += [torch.full_like(x, 3.3), (x < y).to(torch.bfloat16)]
    wanted += [(x.double() * y.double() + x.double()).float().to(torch.bfloat16)]
    for row, (got, want) in enumerate(zip(out, wanted, strict=True)):
        if row == 10:  # exp: two libraries, one unit in the last place of fp32 apart
            close(got, want, 2.0**-7)
        else:
            same(got, want, f"row {row}: ")


def check_fp16_arithmetic():
    x, y = torch.randn(512).half(), torch.randn(512).half()
    out = torch.empty(14, 512, dtype=torch.float16)
    arithmetic[(1,)](x, y, out, N=512)
    same(out[0], x + y)
    same(out[1], x * y)
    same(out[13], (x.double() * y.double() + x.double()).half())


def check_dot_of_every_type():
    for dtype in [*FP8.values(), torch.bfloat16, torch.float16, torch.float32]:
        a, b = torch.randn(32, 64).to(dtype), torch.randn(64, 16).to(dtype)
        c = torch.empty(32, 16)
        multiply[(1,)](a, b, c, M=32, N=16, K=64)
        close(c, a.double() @ b.double(), 1e-5)


def check_dot_of_integers():
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((32, 64), (64, 16)))
    c = torch.empty(32, 16, dtype=torch.int32)
    multiply[(1,)](a, b, c, M=32, N=16, K=64)
    same(c, a.double() @ b.double())


def check_reductions():
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        x = torch.randn(8, 64).to(dtype)
        out = torch.empty(7, 8)
        reduce[(1,)](x, out, M=8, N=64)
        exact = x.double()
        close(out[0], exact.sum(1), 2e-2)
        close(out[0].to(dtype), exact.sum(1).to(dtype), 1e-2)
        same(out[1], exact.max(1).values)
        same(out[2], exact.min(1).values)
        close(out[3], exact.sum(1), 2e-1)
        same(out[4], exact.argmax(1))
        close(out[5], exact.sum(1), 1e-2 if dtype != torch.float32 else 1e-5)
        close(out[6], exact.sum().expand(8), 1e-1)


def check_reduction_of_fp8_is_widened():
    x = torch.randn(8, 64).to(torch.float8_e4m3fnuz)
    out = torch.empty(8 * 64)
    descriptor[(1,)](x, out, 8, 64, BM=8, BN=64)
    same(out.view(8, 64), x.float())


def check_atomic_adds():
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        x, out = torch.ones(128).to(dtype), torch.zeros(4, dtype=dtype)
        index = torch.arange(128, dtype=torch.int32) % 4
        old = torch.empty(128, dtype=dtype)
        accumulate[(1,)](x, index, out, old, 100, N=128)
        same(out, torch.full((4,), 25.0))
        same(old[:100], (torch.arange(100) // 4).to(dtype))


def check_atomic_exchange():
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
        x, out, old = torch.randn(64).to(dtype), torch.ones(64, dtype=dtype), torch.zeros(64, dtype=dtype)
        exchange[(1,)](x, out, old, N=64)
        same(out, x)
        same(old, torch.ones(64))


def check_library_functions():
    x = torch.rand(256) * 3 + 0.1
    out = torch.empty(12, 256)
    library[(1,)](x, out, N=256)
    d = x.double()
    wanted = [d.tanh(), d.rsqrt(), d.round(), d.exp(), d.erf(), d**d, d.log1p(), torch.atan2(d, d * d), d.erf()]
    for got, want in zip(out, [*wanted, d.tanh(), d.log(), d / (d + 1)], strict=True):
        close(got, want, 1e-6)


def check_maximum_ignores_nan_unless_told():
    nan = torch.nan
    x, y = torch.tensor([1.0, nan, 3.0, nan]), torch.tensor([nan, 2.0, 1.0, nan])
    out = torch.empty(4, 4)
    unlike_numbers[(1,)](x, y, out, N=4)
    same(out[0], torch.tensor([1.0, 2.0, 3.0, nan]))
    same(out[1], torch.tensor([nan, nan, 3.0, nan]))
    same(out[2], torch.tensor([1.0, 2.0, 1.0, nan]))


def check_dot_scaled():
    scale_a, scale_b = (torch.randint(120, 134, shape, dtype=torch.uint8) for shape in ((32, 4), (16, 4)))
    b = torch.randn(128, 16).to(torch.float8_e5m2)
    right = b.float() * torch.exp2(scale_b.float() - 127).repeat_interleave(32, 1).T
    a = torch.randn(32, 128).to(torch.float8_e4m3fn)
    c = torch.empty(32, 16)
    left = torch.exp2(scale_a.float() - 127).repeat_interleave(32, 1)
    scaled[(1,)](a, scale_a, b, scale_b, c, M=32, N=16, K=128, F="e4m3")
    close(c, (a.float() * left) @ right, 1e-4)
    packed = torch.randint(0, 256, (32, 64), dtype=torch.uint8)
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    four_bits = table[torch.stack([packed & 15, packed >> 4], -1).reshape(32, 128).long()]
    scaled[(1,)](packed, scale_a, b, scale_b, c, M=32, N=16, K=128, F="e2m1")
    close(c, (four_bits * left) @ right, 1e-4)


def check_unknown_functions_are_named():
    from tests.interpreter.libdevice import evaluate

    try:
        evaluate("__nv_norm4df", [np.zeros(1)], np.float64)
    except NotImplementedError as error:
        assert "__nv_norm4df" in str(error)
    else:
        raise AssertionError("no error")


def run(check) -> str:
    try:
        check()
    except Exception:
        return traceback.format_exc()[-1500:]
    return "ok"


if __name__ == "__main__":
    torch.manual_seed(0)
    numerics.install()
    numerics.install()
    checks = {name: value for name, value in globals().items() if name.startswith("check_")}
    json.dump({name: run(check) for name, check in checks.items()}, sys.stdout)
