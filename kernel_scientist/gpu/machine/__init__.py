"""A machine that executes gfx942 code on a CPU, from the compilers' assembly: of HIP and Triton alike."""
