"""A kernel of Triton's dialect with explicit layouts."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def copy_kernel(x, y, n, B: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    i = gl.program_id(0) * B + gl.arange(0, B, layout=layout)
    gl.store(y + i, gl.load(x + i, mask=i < n), mask=i < n)
