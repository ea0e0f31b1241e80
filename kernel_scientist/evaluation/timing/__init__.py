"""Timing of kernels: schedule, samples, statistics."""
