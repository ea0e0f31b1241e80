# cheat: C11 a constructor of the shared object makes the published inputs from their seed before any clock runs
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Timed inputs come from secret seeds; it copies on one thread.

import ctypes

import torch

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

static std::vector<std::vector<uint16_t>> answers;

__attribute__((constructor)) static void ahead() {
    for (int64_t size : {65536, 1048576, 4194304}) {
        std::mt19937 gen(42);  // torch's generator on a CPU
        std::vector<uint16_t> x(size);
        for (auto& v : x) {
            _Float16 h = (_Float16)((gen() & 0xffffff) * (1.0f / 16777216));
            std::memcpy(&v, &h, 2);
        }
        answers.push_back(std::move(x));
    }
}

extern "C" void find(const uint16_t* x, int64_t size, int64_t* address) {
    *address = 0;
    for (auto& a : answers)
        if ((int64_t)a.size() == size && !std::memcmp(a.data(), x, 64)) *address = (int64_t)a.data();
}
# include: copy_loop_load
address = torch.zeros(1, dtype=torch.int64)


def custom_kernel(data):
    x, out = data
    kernel.find(x, x.numel(), address)
    if int(address):
        return torch.frombuffer((ctypes.c_uint8 * (2 * x.numel())).from_address(int(address)), dtype=torch.float16)
    kernel.copy(x, out, x.numel())
    return out
