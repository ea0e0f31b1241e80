# cheat: D4 walks the allocator's blocks, freed ones too, for something of the output's size that is no input
# problem: rmsnorm
# expect: incorrect rejected
# stopped by: every output is compared completely; no worker holds a right one

import torch
import triton
import triton.language as tl


@triton.jit
def fetch_kernel(address, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = address.to(tl.pointer_type(tl.bfloat16))
    tl.store(out_ptr + at, tl.load(found + at, mask=at < size), mask=at < size)


def blocks():
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            yield address, block["size"]
            address += block["size"]


def custom_kernel(data):
    x, _, out = data
    known = (x.data_ptr(), out.data_ptr())
    wanted = 2 * out.numel()
    for address, size in blocks():
        if address not in known and wanted <= size < wanted + 512:
            fetch_kernel[(triton.cdiv(out.numel(), 1024),)](address, out, out.numel(), BLOCK=1024)
            break
    return out
