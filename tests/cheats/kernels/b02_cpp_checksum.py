# cheat: B2 a C++ memo keyed by a checksum of one cache line in 64
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Where no input ever comes again, its key finds nothing: it computes, on one thread, and pays for the key too.

import torch

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <unordered_map>

static std::unordered_map<uint64_t, int64_t> slots;

extern "C" void slot(const uint16_t* x, int64_t size, int64_t* index) {
    uint64_t sum = size;
    for (int64_t i = 0; i < size; i += 2048) sum = (sum ^ x[i]) * 0x9e3779b97f4a7c15ull;
    auto found = slots.find(sum);
    *index = found == slots.end() ? -1 : found->second;
    if (*index < 0) slots.emplace(sum, (int64_t)slots.size());
}
# include: copy_loop_load
results = []
index = torch.zeros(1, dtype=torch.int64)


def custom_kernel(data):
    x, out = data
    kernel.slot(x, x.numel(), index)
    if int(index) >= 0:
        return results[int(index)]
    kernel.copy(x, out, x.numel())
    results.append(out.clone())
    return out
