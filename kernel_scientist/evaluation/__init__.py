"""Checking and timing of untrusted kernels."""
