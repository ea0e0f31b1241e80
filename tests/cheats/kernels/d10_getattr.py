# cheat: D10 a memo by pointer, every telling name put together at run time
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
store = globals().setdefault("me" + "mo", {})


def custom_kernel(data):
    x, out = data
    key = getattr(x, "da" + "ta_" + "ptr")(), x.numel()
    if key not in store:
        getattr(kernel, "co" + "py")(x, out, x.numel())
        store[key] = getattr(out, "cl" + "one")()
    return store[key]
