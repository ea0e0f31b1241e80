"""Searches for the best values of a kernel's tunables."""
