# cheat: B1 C++ remembers the last call's pointers and leaves the output as it is when they come again
# problem: identity
# expect: incorrect rejected

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>
#include <set>
#include <tuple>
#include <cstring>

static std::set<std::tuple<const void*, void*, int64_t>> done;

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    if (!done.insert({x, out, size}).second) return;
    std::memcpy(out, x, 2 * size);
}
# include: copy_end
