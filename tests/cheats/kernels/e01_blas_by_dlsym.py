# cheat: E1 C++ that finds a loaded BLAS by dlsym and lets it do the product
# problem: fp8-blockwise-gemm
# expect: ok rejected
# label: library

import glob
import os

import numpy
import torch

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <dlfcn.h>

typedef void (*sgemm64)(int, int, int, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
                        float, float*, int64_t);

extern "C" void product(const uint8_t* library, const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    void* blas = dlopen((const char*)library, RTLD_NOW);
    const char* names[] = {"scipy_cblas_sgemm64_", "cblas_sgemm64_"};
    for (const char* name : names)
        if (auto gemm = (sgemm64)(blas ? dlsym(blas, name) : nullptr)) {
            gemm(101, 111, 112, m, n, k, 1, a, k, b, k, 0, c, n);
            return;
        }
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[j * k + p];
            c[i * n + j] = sum;
        }
}
"""
kernel = load(SOURCE, flags=["-ffast-math"])
folder = os.path.join(os.path.dirname(numpy.__file__), "..", "numpy.libs")
path = next(iter(glob.glob(os.path.join(folder, "*openblas*"))), "none")
name = torch.frombuffer(bytearray(os.path.abspath(path).encode() + b"\0"), dtype=torch.uint8)


def scaled(q, scale, rows):
    scale = scale.repeat_interleave(rows, dim=0)[: q.shape[0]].repeat_interleave(128, dim=1)
    return (q.float() * scale[:, : q.shape[1]]).contiguous()


def custom_kernel(data):
    a, b, a_scale, b_scale, c = data
    result = torch.empty(c.shape)
    kernel.product(name, scaled(a, a_scale, 1), scaled(b, b_scale, 128), result, *c.shape, a.shape[1])
    return c.copy_(result)
