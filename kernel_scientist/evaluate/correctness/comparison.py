"""Is an output right: first that it is the kind of object that was asked for, then its values.

The expected output is computed here, after the kernel has ended its call, and never leaves this process.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from kernel_scientist.evaluate.correctness.inputs import InputSet
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.untrusted.buffers import on_device
from kernel_scientist.workers.validation import leaves

SPARE, SPARE_BYTES = 16, 64 << 20
"""How many times as large as a right output a wrong one may be to be read at all, and how large anyway."""
PATIENCE = 8
"""Outputs that may differ bit by bit from the reference's in a row before that is not tried any more."""


class Comparison:
    """Compares outputs of one problem. The form of a right output is found once per case."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._forms: dict[str, protocol.Header] = {}
        self._patience: dict[str, int] = {}
        """By case, how many outputs may still differ bit by bit before the comparison is given up."""

    def require(self, inputs: InputSet, got: protocol.Header, buffers: Sequence[bytearray]) -> None:
        """Raise KernelFailure unless a worker's output is right for its inputs."""
        name = inputs.case.name
        if fault := _mismatch(self._form(inputs), got) or _shared(got) or self._alias(inputs, got):
            raise KernelFailure(Verdict.INCORRECT, f"{name}: {fault}")
        if self._equals_reference(inputs, buffers):
            return
        place = None if self.problem.device == "cpu" else on_device(self.problem.device)
        try:
            output = protocol.decode(got, list(buffers), place)
        except protocol.WireError as error:
            raise KernelFailure(Verdict.REJECTED, f"{name}: its output is not data: {error}") from error
        good, message = self.problem.check(inputs.data, output)
        if not good:
            raise KernelFailure(Verdict.INCORRECT, f"{name}: {message}")

    def _equals_reference(self, inputs: InputSet, buffers: Sequence[bytearray]) -> bool:
        """Whether an output has the reference's bytes, which is much quicker to find out than by the problem's check.

        Not tried any more on a case where the last few outputs differed, as the reference takes time too.
        """
        name, expected = inputs.case.name, list[protocol.Buffer]()
        if self._patience.setdefault(name, PATIENCE) <= 0 or self.problem.device != "cpu":
            return False
        protocol.encode(self._expected(inputs), expected)
        same = list[protocol.Buffer](buffers) == expected
        self._patience[name] = PATIENCE if same else self._patience[name] - 1
        return same

    def _expected(self, inputs: InputSet) -> Any:
        if not inputs.expected:
            inputs.expected.append(self.problem.reference(inputs.data))
        return inputs.expected[0]

    def room(self, inputs: InputSet) -> int:
        """Return how many bytes of output are taken from a worker."""
        right = sum(protocol.Form.read(leaf).bytes for leaf in leaves(self._form(inputs)))
        return max(SPARE * right, SPARE_BYTES)

    def _form(self, inputs: InputSet) -> protocol.Header:
        name = inputs.case.name
        if name not in self._forms:
            self._forms[name] = described(self.problem.reference(inputs.data))
        return self._forms[name]

    def _alias(self, inputs: InputSet, got: protocol.Header) -> str:
        """Return how an output's memory is not its own, or nothing."""
        if self.problem.policy.aliases or not isinstance(inputs.data, tuple):
            return ""
        for leaf, right in zip(leaves(got), leaves(self._form(inputs)), strict=True):
            position, size = leaf.get("input"), protocol.Form.read(right).bytes
            if position is not None and position not in self.problem.writes:
                return f"the memory of its output is that of input {position}"
            if position is None and leaf.get("storage_bytes") != size:
                return f"its output of {size} bytes is part of a storage of {leaf.get('storage_bytes')}"
        return ""


def described(output: Any) -> protocol.Header:
    """Return what a right output must look like."""
    header = protocol.encode(output, [])
    for leaf, tensor in zip(leaves(header), _tensors(output), strict=True):
        leaf |= {"strides": list(tensor.stride()), "device": tensor.device.type}
    return header


def _tensors(value: Any) -> list[Any]:
    if hasattr(value, "stride"):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [t for v in value for t in _tensors(v)] if isinstance(value, (list, tuple)) else []


def _mismatch(want: protocol.Header, got: Any) -> str:
    """Return how an output differs from a right one as an object, or nothing."""
    for right, other in itertools.zip_longest(_facts(want), _facts(got), fillvalue=dict[str, Any]()):
        for key in right:
            if key not in other or other[key] != right[key]:
                if key == "kind":
                    return f"it returned {other.get('kind', 'nothing')}, expected {right['kind']}"
                return f"it returned {other['kind']} with {key} {other.get(key)}, expected {right[key]}"
    return ""


def _facts(tree: Any) -> list[dict[str, Any]]:
    """Return what must agree of each part of a description. Strides and order of dimensions of one element may be any.

    A description that is none has one fact, its kind.
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
        return [{"kind": "no description of its output"}]


def _shared(got: protocol.Header) -> str:
    starts = [leaf.get("storage") for leaf in leaves(got) if leaf.get("storage")]
    return "two of its outputs share their memory" if len(set(map(str, starts))) < len(starts) else ""
