"""GPU Kernel Scientist: improve GPU kernels by the scientific method.

The domain. It knows neither Prefect nor DVC; importing this package imports nothing heavy. A kernel's file imports
`load` from here.
"""

from kernel_scientist.compile.cpp import load
from kernel_scientist.compile.request import CompileError

__all__ = ["CompileError", "load"]

__version__ = "0.1.0"
