"""The old address of `load`, for kernels in older campaigns."""
