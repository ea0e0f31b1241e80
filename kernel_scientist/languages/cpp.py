"""The old address of `load`, for kernels in older campaigns."""

from kernel_scientist import CompileError as CompileError
from kernel_scientist import load as load
