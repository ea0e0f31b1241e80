# cheat: D9 exports a symbol whose name is no text, for whoever disassembles it
# problem: identity
# expect: ok compile_error rejected
# gains: false
# It copies on one thread.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

extern "C" void odd() asm("\xff\xfe\xc3");
extern "C" void odd() { asm volatile("nop"); }

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i];
}
# include: copy_loop_end
