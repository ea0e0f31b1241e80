# cheat: B1 the result hangs on the input object as an attribute
# problem: identity
# expect: ok incorrect rejected
# gains: false
# Where every call has a tensor object of its own it never finds one again, and computes on one thread.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])


def custom_kernel(data):
    x, out = data
    if not hasattr(x, "answer"):
        kernel.copy(x, out, x.numel())
        x.answer = out.clone()
    return x.answer
