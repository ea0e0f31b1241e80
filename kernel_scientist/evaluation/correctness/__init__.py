"""Correctness of a kernel: inputs, comparison of outputs, integrity of outputs, policy."""
