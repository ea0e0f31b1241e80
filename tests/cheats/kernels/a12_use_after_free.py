# cheat: A12 returns a tensor over memory that it has given back to its pool; the next call writes there
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# It does the whole copy on one thread; what it returns is valid until its next call only.

import ctypes

import torch

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <sys/mman.h>

static char* pool = nullptr;
static int64_t pool_bytes = 0;

extern "C" void copy(const uint16_t* x, int64_t size, int64_t* address) {
    if (pool_bytes < 2 * size) {
        if (pool) munmap(pool, pool_bytes);  // whoever still holds a result of an earlier call holds nothing now
        pool_bytes = (2 * size + 4095) / 4096 * 4096;
        pool = (char*)mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    for (int64_t i = 0; i < size; ++i) ((uint16_t*)pool)[i] = x[i];
    *address = (int64_t)pool;
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
address = torch.zeros(1, dtype=torch.int64)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, x.numel(), address)
    return torch.frombuffer((ctypes.c_uint8 * (2 * x.numel())).from_address(int(address)), dtype=torch.float16)
