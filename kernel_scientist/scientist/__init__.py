"""The agents that select kernels, design experiments, write and repair kernels."""
