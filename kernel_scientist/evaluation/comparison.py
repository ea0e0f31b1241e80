"""Comparison of an output with the reference: first its form (types, shapes), then its values.

The expected output is computed here, after the kernel has ended its call, and never leaves this process.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch

from kernel_scientist.evaluation.inputs import InputSet
from kernel_scientist.problems.problem import Problem
from kernel_scientist.problems.trees import items, tensors
from kernel_scientist.records import layout
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.validation import leaves

SPARE, SPARE_BYTES = 16, 64 << 20
"""Largest output that is read: this multiple of a correct output's size, or this many bytes if that is more."""
PATIENCE = 8
"""Consecutive outputs that may differ in bits from the reference before the bitwise comparison is skipped."""


class Comparison:
    """Compares outputs of one problem. The form of a correct output is determined once per case."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._forms: dict[str, protocol.Header] = {}
        self._patience: dict[str, int] = {}
        """Outputs per case that may still differ in bits before the bitwise comparison is skipped."""

    def require(self, inputs: InputSet, got: protocol.Header, buffers: Sequence[protocol.Values]) -> None:
        """Raise KernelFailure unless a worker's output is correct for its inputs."""
        name = inputs.case.name
        form, fault = self._right_form(inputs, got)
        if fault := fault or _shared(got) or self._alias(inputs, got, form):
            raise KernelFailure(Verdict.INCORRECT, f"{name}: {fault}")
        if self._equals_reference(inputs, got, buffers):
            return
        device = self.problem.device
        try:
            output = protocol.decode(got, buffers, lambda form, data: protocol.tensor(form, data).to(device))
        except protocol.WireError as error:
            raise KernelFailure(Verdict.REJECTED, f"{name}: its output is not data: {error}") from error
        good, message = self.problem.check(inputs.data, output)
        if not good:
            raise KernelFailure(Verdict.INCORRECT, f"{name}: {message}")

    def _equals_reference(self, inputs: InputSet, got: protocol.Header, buffers: Sequence[protocol.Values]) -> bool:
        """Whether an output equals the reference's bit by bit. This is much quicker than the problem's own check.

        Skipped on a case whose last few outputs differed, because computing the reference takes time too, and for
        outputs on a GPU.
        """
        name, expected = inputs.case.name, list[protocol.Buffer]()
        on_host = [data for data in buffers if isinstance(data, bytearray)]
        on_gpu = self.problem.device != "cpu" or len(on_host) < len(buffers)
        if self._patience.setdefault(name, PATIENCE) <= 0 or on_gpu:
            return False
        if not inputs.expected:
            inputs.expected.append(self.problem.reference(inputs.data))
        values = _values(protocol.encode(inputs.expected[0], expected))
        same = [memoryview(data) for data in on_host] == expected and values == _values(got)
        self._patience[name] = PATIENCE if same else self._patience[name] - 1
        return same

    def room(self, inputs: InputSet) -> int:
        """Return how many bytes of output are accepted from a worker."""
        right = sum(protocol.DenseLayout.read(leaf).bytes for leaf in leaves(self._form(inputs)))
        return max(SPARE * right, SPARE_BYTES)

    def _form(self, inputs: InputSet) -> protocol.Header:
        name = inputs.case.name
        if name not in self._forms:
            self._forms[name] = described(self.problem.reference(inputs.data))
        return self._forms[name]

    def _right_form(self, inputs: InputSet, got: protocol.Header) -> tuple[protocol.Header, str]:
        """Return the form that an output should have, the reference's or that of a buffer for it; how it differs."""
        right = self._form(inputs)
        fault = _mismatch(right, got)
        if fault and not _mismatch(alone := _alone(right), got):  # the reference returns a part of something larger
            return alone, ""
        if fault and right["kind"] == "tensor" and isinstance(inputs.data, (tuple, list)):
            for form in (described(items(inputs.data)[place]) for place in self.problem.writes):
                if form.get("shape") == right["shape"] and not _mismatch(form, got):
                    return form, ""
        return right, fault

    def _alias(self, inputs: InputSet, got: protocol.Header, form: protocol.Header) -> str:
        """Return how an output shares memory with an input or a larger storage; empty if it does not."""
        if self.problem.policy.aliases or not isinstance(inputs.data, (tuple, list)):
            return ""
        given = [(place, one) for place, item in enumerate(items(inputs.data)) for one in tensors(item)]
        positions = [place for place, _ in given]
        writable = [one for place, one in given if place in self.problem.writable]
        for leaf, right in zip(leaves(got), leaves(form), strict=True):
            number, size = leaf.get("input"), protocol.DenseLayout.read(right).bytes
            known = type(number) is int and 0 <= number < len(positions)  # the worker's word
            if number is not None and not (known and _lies_in(leaf, given[number][1], writable)):
                return f"the memory of its output is that of input {positions[number] if known else '?'}"
            if number is None and leaf.get("storage_bytes") not in (size, right["storage_bytes"]):
                return f"its output of {size} bytes is part of a storage of {leaf.get('storage_bytes')}"
        return ""


def _lies_in(leaf: protocol.Header, owner: torch.Tensor, writable: Sequence[torch.Tensor]) -> bool:
    """Whether an output of the right form, in the storage of an input, lies within a tensor that a kernel may write."""
    try:
        start, end = layout.View.read({**leaf, "stride": leaf["strides"]}).span
    except (LookupError, TypeError, ValueError):  # the worker's word
        return False
    spans = [layout.View.of(one).span for one in writable if layout.identity(one) == layout.identity(owner)]
    return any(low <= start and end <= high for low, high in spans)


def described(output: Any) -> protocol.Header:
    """Return the description that a correct output must match."""

    def describe(tensor: torch.Tensor) -> protocol.Header:
        facts = {"strides": list(tensor.stride()), "device": tensor.device.type}
        return {**protocol.form(tensor).header(), **facts, "storage_bytes": tensor.untyped_storage().nbytes()}

    return protocol.described(output, describe)


def _alone(spec: protocol.Header) -> protocol.Header:
    """Return a description with each tensor that is a view with gaps as one that fills its memory, row by row."""
    if spec["kind"] != "tensor":
        items = spec.get("items")
        if isinstance(items, dict):
            return {**spec, "items": {key: _alone(one) for key, one in items.items()}}
        return {**spec, "items": [_alone(one) for one in items]} if items else spec
    shape, size = spec["shape"], protocol.DenseLayout.read(spec).bytes
    if protocol.order_of(shape, spec["strides"]) is not None:
        return {**spec, "storage_bytes": size}
    strides = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    return {**spec, "strides": strides, "order": list(range(len(shape))), "storage_bytes": size}


def _mismatch(want: protocol.Header, got: Any) -> str:
    """Return how the form of an output differs from that of a correct one; empty if it does not."""
    for right, other in itertools.zip_longest(_facts(want), _facts(got), fillvalue=dict[str, Any]()):
        for key in right:
            if key not in other or other[key] != right[key]:
                if key == "kind":
                    return f"it returned {other.get('kind', 'nothing')}, expected {right['kind']}"
                return f"it returned {other['kind']} with {key} {other.get(key)}, expected {right[key]}"
    return ""


def _facts(tree: Any) -> list[dict[str, Any]]:
    """Return the fields of each part of a description that must agree. Strides of dimensions of size one are free.

    An invalid description has a single field, `kind`.
    """
    try:
        kind = tree["kind"]
        if kind == "tensor":
            shape = list(tree["shape"])
            wide = [d for d, size in enumerate(shape) if size > 1 and 0 not in shape]
            strides, order = [tree["strides"][d] for d in wide], [d for d in tree["order"] if d in wide]
            known = {key: tree[key] for key in ("dtype", "shape", "device")}
            return [{"kind": "a tensor", **known, "strides": strides, "order": order}]
        if kind in ("list", "tuple"):
            return [{"kind": f"a {kind}", "length": len(tree["items"])}, *(f for v in tree["items"] for f in _facts(v))]
        if kind == "dict":
            items = dict(tree["items"])
            return [{"kind": "a dict", "keys": list(items)}, *(f for v in items.values() for f in _facts(v))]
        if kind == "object":
            return [{"kind": str(tree["type"])}]
        return [{"kind": "None" if tree["value"] is None else "a value"}]
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return [{"kind": "invalid description"}]


def _values(tree: protocol.Header) -> list[str]:
    """Return the plain values of an output of the right form, in order."""
    if tree["kind"] == "value":
        return [repr(tree["value"])]
    items = tree.get("items", ())
    return [value for item in (items.values() if isinstance(items, dict) else items) for value in _values(item)]


def _shared(got: protocol.Header) -> str:
    starts = [leaf.get("storage") for leaf in leaves(got) if leaf.get("storage")]
    return "two of its outputs share their memory" if len(set(map(str, starts))) < len(starts) else ""
