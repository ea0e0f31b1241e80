"""A machine that executes, checks and counts gfx942 code on a CPU: the compilers' assembly, for HIP and Triton alike."""
