"""Triton's interpreter with memory checks."""
