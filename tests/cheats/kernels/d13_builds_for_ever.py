# cheat: D13 has the builder compile one source after the other
# problem: identity
# expect: timeout compile_error rejected crashed

import time

from kernel_scientist import load

SOURCE = """
#include <cstdint>

static const char* number = "ID";

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
for _ in range(40):  # for ever, if nobody minds
    kernel = load(SOURCE.replace("ID", str(time.time_ns())))


# include: copy_call
