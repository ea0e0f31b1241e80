"""A GPU that is not present, as torch, Triton and the programs that kernels start see it."""
