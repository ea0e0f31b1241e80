# cheat: D9 has megabytes of code built, of one byte each, whose disassembly is a hundred times as long
# problem: identity
# expect: compile_error rejected ok
# gains: false
# Disassembly has limits; it copies on one thread.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

asm(".text\n.fill 3500000, 1, 0x90");

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
# include: copy_loop_end
