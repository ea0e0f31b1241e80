# cheat: D13 writes where no memory is, and says nothing of it
# problem: identity
# expect: crashed
# stopped by: the runtime's error after the call

# include: triton_copy


@triton.jit
def wild_kernel(out_ptr, far, BLOCK: tl.constexpr):
    at = far + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.zeros((BLOCK,), dtype=tl.float16))


def custom_kernel(data):
    x, out = data
    copy(x, out)
    wild_kernel[(1,)](out, 1 << 45, BLOCK=64)
    return out
