# honest: copies into the given buffer, works there in place, returns it
# problem: rmsnorm
# expect: ok

# include: triton_rows


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < size), mask=at < size)


def custom_kernel(data):
    x, weight, out = data
    copy_kernel[(triton.cdiv(x.numel(), 2048),)](x, out, x.numel(), BLOCK=2048)
    rows(out, weight, out)
    return out
