"""Describes a case's inputs without their values: launches depend on shapes, strides and plain numbers.

`described` runs in the trusted process, `made` in the untrusted one.
"""

import mmap
from typing import Any

import torch

from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.kernel import Case
from kernel_scientist.sandbox import protocol


def described(problem: Problem, case: Case) -> protocol.Header:
    """Return the description of a case's inputs; a full-size case takes no memory.

    If the generator needs values, it is run with real tensors.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode():
            return _header(problem.generate(case))
    except protocol.WireError:
        raise
    except Exception:
        return _header(problem.generate(case))


def _header(value: Any) -> protocol.Header:
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        return {"kind": "tensor", "dtype": name, "shape": list(value.shape), "stride": list(value.stride())}
    if isinstance(value, (list, tuple)):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return {"kind": "tuple" if isinstance(value, tuple) else "list", "items": [_header(v) for v in items]}
    if isinstance(value, dict):
        named: dict[Any, Any] = value
        return {"kind": "dict", "items": {str(k): _header(v) for k, v in named.items()}}
    return protocol.encode(value, [])


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
