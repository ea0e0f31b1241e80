# cheat: B2 memo keyed by x's content; the weight is not part of the key
# problem: rmsnorm
# expect: ok incorrect rejected
# gains: false
# Where no input ever comes again, its key finds nothing: it computes, on one thread, and pays for the key too. The
# same x with other weights shows it.

import zlib

# include: rows
memo = {}


def custom_kernel(data):
    x, weight, out = data
    key = (x.shape, zlib.crc32(x.view(-1)[:4096].view(dtype=__import__("torch").uint8).numpy()))
    if key not in memo:
        kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
        memo[key] = out.clone()
    return memo[key]
