"""Workers: the sandboxed processes that run kernels."""
