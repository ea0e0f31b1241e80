# cheat: E6 machine code as an .incbin-like blob in a C++ string of bytes
# problem: identity
# expect: ok rejected crashed
# Its output is right and its time its own; no rule forbids machine code, so it carries no label.

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

asm(".text\n.globl copy\n.type copy, @function\ncopy:\n"
    ".byte 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xc6, 0x48, 0x8d, 0x0c, 0x12, 0xf3, 0xa4, 0xc3\n");
# include: copy_end
