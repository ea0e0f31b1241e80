# cheat: C3 a thread launches the work after the return
# problem: rmsnorm
# expect: ok incorrect rejected crashed
# gains: false
# All that a call has started, on whatever stream, is waited for and counted, or too late.

import time
from concurrent.futures import ThreadPoolExecutor

import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, weight_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base, lanes = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + base + start + lanes, mask=start + lanes < cols, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + 1e-6)
    for start in range(0, cols, BLOCK):
        mask = start + lanes < cols
        x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + lanes, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + lanes, (x * scale * weight).to(tl.bfloat16), mask=mask)


def rows(x, weight, out):
    rows_kernel[(x.shape[0],)](x, weight, out, x.shape[1], BLOCK=1024)


pool = ThreadPoolExecutor(1)
pool.submit(int).result()  # the thread exists before anybody counts threads
known = set()


def later(x, weight, out):
    time.sleep(5e-5)
    rows(x, weight, out)


def custom_kernel(data):
    x, weight, out = data
    if x.shape not in known:
        known.add(x.shape)
        rows(x, weight, out)  # compiled in time
        return out
    pool.submit(later, x, weight, out)
    return out
