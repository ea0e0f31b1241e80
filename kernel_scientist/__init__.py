"""GPU Kernel Scientist: improve GPU kernels by the scientific method.

The domain. It knows neither Prefect nor DVC; importing this package imports nothing heavy.
"""

__version__ = "0.1.0"

HARNESS_VERSION = "7"
"""Raised whenever the judge measures or decides differently: part of every cache key."""
