"""Describes a case's inputs without their values: launches depend on shapes, strides and plain numbers.

A description is kept in the cache folder: to make one, torch and its tensors without memory are imported, which takes
4 s.
"""

import json
from importlib import metadata
from typing import Any

from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.kernel import Case, digest
from kernel_scientist.sandbox import protocol


def described(problem: Problem, case: Case) -> protocol.Header:
    """Return the description of a case's inputs; a full-size case takes no memory.

    If the generator needs values, it is run with real tensors, but the values of large ones are zeros. Raises WireError
    if an input cannot be described.
    """
    key = (
        problem.digest,
        case.model_dump_json(),
        metadata.version("torch"),
        environment.sources_digest("problems", "records"),
    )
    kept = environment.cache_folder() / "case-shapes" / f"{digest(chr(0).join(key))}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    found = _described(problem, case)
    environment.keep(kept, json.dumps(found))
    return found


def _described(problem: Problem, case: Case) -> protocol.Header:
    from torch._subclasses.fake_tensor import FakeTensorMode

    from kernel_scientist.gpu.capture.large_tensors import SkipsLarge

    try:
        with FakeTensorMode():
            return header(problem.generate(case))
    except protocol.WireError:
        raise
    except Exception:
        with SkipsLarge():
            return header(problem.generate(case))


def header(value: Any) -> protocol.Header:
    """Return the description of a value. Raises WireError if it cannot be described."""
    import torch

    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        place = {"stride": list(value.stride()), "first": value.storage_offset()}
        return {"kind": "tensor", "dtype": name, "shape": list(value.shape), **place}
    if isinstance(value, (list, tuple)):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return {"kind": "tuple" if isinstance(value, tuple) else "list", "items": [header(v) for v in items]}
    if isinstance(value, dict):
        named: dict[Any, Any] = value
        return {"kind": "dict", "items": {str(k): header(v) for k, v in named.items()}}
    return protocol.encode(value, [])
