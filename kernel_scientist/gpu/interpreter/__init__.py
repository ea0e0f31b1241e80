"""Triton's interpreter, made exact: what counts a launch for its predicted time computes addresses by it."""
