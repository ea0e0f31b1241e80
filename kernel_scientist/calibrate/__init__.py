"""Calibration of the performance model: time a suite of kernels on this GPU, fit the model's constants to the times."""
