"""Calibration of the performance model: kernels of known work are timed on the GPU at hand, and constants fitted."""
