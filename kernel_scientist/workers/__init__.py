"""Processes that run kernels, as the evaluator holds them."""
