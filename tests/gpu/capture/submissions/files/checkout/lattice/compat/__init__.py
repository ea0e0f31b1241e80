import importlib.metadata

try:
    HERE = bool(importlib.metadata.version("lattice"))
except ImportError:
    HERE = False
if HERE:
    import triton
    import triton.language as tl
else:
    triton = tl = None
