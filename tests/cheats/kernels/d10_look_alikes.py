# cheat: D10 a name in look-alike letters: what is called is not what is defined to the eye
# problem: identity
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["-fno-tree-loop-distribute-patterns"])
memo = {}
memо = memo  # the last letter is Cyrillic


def custom_kernel(data):
    x, out = data
    memo.clear()  # says it forgets
    if x.numel() not in memо_:
        kernel.copy(x, out, x.numel())
        memо_[x.numel()] = out.clone()
    return memо_[x.numel()]


memо_ = {}
