# cheat: D9 its source is a file of specs for the compiler's driver too: the linker is a shell's command
# problem: identity
# expect: compile_error

from kernel_scientist import load

SOURCE = r"""#if 0
*link_command:
/bin/sh -c setsid\ sleep\ 200\ &\ g++\ -O3\ -march=native\ -fPIC\ -shared\ -o\ kernel.so\ kernel.cpp

*junk:
#endif
#include <cstdint>

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
"""
kernel = load(SOURCE, flags=["--specs=kernel.cpp"])


# include: copy_call
