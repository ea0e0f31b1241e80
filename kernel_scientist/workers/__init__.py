"""Processes that run kernels, as the verifier holds them."""
