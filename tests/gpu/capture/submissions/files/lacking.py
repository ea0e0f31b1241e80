"""One kernel needs what cannot be imported; another one needs an instruction of another GPU; a third one compiles."""

import triton
import triton.language as tl
from a_package_that_nobody_has.ops import combine, tracked


@triton.jit
def needs(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, combine(tl.load(x_ptr + i)))


@triton.jit
def foreign(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i).to(tl.float32)
    y = tl.inline_asm_elementwise("rcp.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x_ptr + i, y)


@tracked
@triton.jit
def whole(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)
