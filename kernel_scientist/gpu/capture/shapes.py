"""Makes inputs of the described shapes (`gpu.capture.case_shapes`); their values are zeros.

Runs in the untrusted process.
"""

import mmap
from typing import Any

import torch

from kernel_scientist.sandbox import protocol


def made(header: protocol.Header) -> Any:
    """Return inputs with the described shapes. Their values are zeros; memory is allocated when touched."""
    match header["kind"]:
        case "tensor":
            return _zeros(header)
        case "dict":
            return {k: made(v) for k, v in header["items"].items()}
        case "list":
            return [made(v) for v in header["items"]]
        case "tuple":
            return tuple(made(v) for v in header["items"])
        case "dtype":
            return getattr(torch, header["value"])
        case _:
            return header["value"]


def _zeros(header: protocol.Header) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, header["dtype"])
    shape, stride = header["shape"], header["stride"]
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if all(shape) else 0
    if reach == 0:
        return torch.empty(shape, dtype=dtype)
    pages = mmap.mmap(-1, reach * dtype.itemsize)
    flat = torch.frombuffer(pages, dtype=torch.uint8)
    return flat.view(dtype).as_strided(shape, stride)
