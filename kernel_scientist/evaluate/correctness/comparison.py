"""Is an output right: first that it is the kind of object that was asked for, then its values.

The expected output is computed here, after the kernel has ended its call, and never leaves this process.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from kernel_scientist.evaluate.correctness.inputs import InputSet
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.client import never
from kernel_scientist.workers.untrusted.buffers import on_device
from kernel_scientist.workers.validation import leaves

SPARE, SPARE_BYTES = 16, 64 << 20
"""How many times as large as a right output a wrong one may be to be read at all, and how large anyway."""


PATIENCE = 8
"""Outputs that may differ bit by bit from the reference's in a row before that is not tried any more."""
_libc = ctypes.CDLL(None)
_libc.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class Comparison:
    """Compares outputs of one problem. The form of a right output is found once per case."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._forms: dict[str, protocol.Header] = {}
        self._patience: dict[str, int] = {}
        """By case, how many outputs may still differ bit by bit before the comparison is given up."""

    def require(self, inputs: InputSet, got: protocol.Header, buffers: Sequence[bytearray | None]) -> None:
        """Raise KernelFailure unless a worker's output is right for its inputs."""
        name = inputs.case.name
        if fault := self._fault(self._form(inputs), got):
            raise KernelFailure(Verdict.INCORRECT, f"{name}: it returned {fault}")
        for leaf, right in zip(leaves(got), leaves(self._form(inputs)), strict=True):
            if _order(leaf) != _order(right):  # its strides are the right ones, so its bytes are in that order
                raise KernelFailure(Verdict.REJECTED, f"{name}: its output is not data: its strides say another order")
        if fault := _shared(got) or self._alias(inputs, got):
            raise KernelFailure(Verdict.INCORRECT, f"{name}: {fault}")
        if None in buffers and buffers.count(None) == len(buffers):
            return
        place = None if self.problem.device == "cpu" else on_device(self.problem.device)
        try:
            output = protocol.decode(got, self._filled(inputs, buffers), place)
        except protocol.WireError as error:
            raise KernelFailure(Verdict.REJECTED, f"{name}: its output is not data: {error}") from error
        good, message = self.problem.check(inputs.data, output)
        if not good:
            raise KernelFailure(Verdict.INCORRECT, f"{name}: {message}")

    def accept(self, every: Sequence[InputSet]) -> Callable[[int, int, int], bool]:
        """Return what compares the tensors of a row's outputs, in order, with the reference's, bit by bit.

        That is much quicker than the problem's own check. Not tried any more on a case where the last few outputs
        differed, as the reference takes time too.
        """
        name = every[0].case.name
        if self._patience.setdefault(name, PATIENCE) <= 0 or self.problem.device != "cpu":
            return never
        expected = [tensor for inputs in every for tensor in _tensors(self._expected(inputs))]

        def accept(number: int, address: int, size: int) -> bool:
            right = expected[number] if number < len(expected) else None
            same = right is not None and right.nbytes == size and protocol.dense_order(right) is not None
            same = same and right is not None and _libc.memcmp(address, right.data_ptr(), size) == 0
            self._patience[name] = PATIENCE if same else self._patience[name] - 1
            return same

        return accept

    def _expected(self, inputs: InputSet) -> Any:
        if not inputs.expected:
            inputs.expected.append(self.problem.reference(inputs.data))
        return inputs.expected[0]

    def _filled(self, inputs: InputSet, buffers: Sequence[bytearray | None]) -> list[bytearray]:
        """Return the buffers, with the expected bytes for those that were accepted."""
        right: list[protocol.Buffer] = []
        if None in buffers:
            protocol.encode(self._expected(inputs), right)
        return [bytearray(right[i]) if data is None else data for i, data in enumerate(buffers)]

    def room(self, inputs: InputSet) -> int:
        """Return how many bytes of output are taken from a worker."""
        right = sum(protocol.Form.read(leaf).bytes for leaf in leaves(self._form(inputs)))
        return max(SPARE * right, SPARE_BYTES)

    def _form(self, inputs: InputSet) -> protocol.Header:
        name = inputs.case.name
        if name not in self._forms:
            self._forms[name] = described(self.problem.reference(inputs.data))
        return self._forms[name]

    def _fault(self, want: protocol.Header, got: Any) -> str:
        """Return what is wrong with an output as an object, or nothing."""
        if not isinstance(got, dict):
            return "no description of its output"
        if got.get("kind") != want["kind"]:
            return f"{_words(got)}, expected {_words(want)}"
        if want["kind"] == "tensor":
            for key in ("dtype", "shape", "device", "strides"):
                if got.get(key) != want[key] and not (key == "strides" and _same_strides(want, got)):
                    return f"{_words(got)} with {key} {got.get(key)}, expected {want[key]}"
            return ""
        if want["kind"] in ("list", "tuple"):
            items = got.get("items")
            if not isinstance(items, list) or len(items) != len(want["items"]):
                return f"{_words(got)} of another length than {len(want['items'])}"
            return next(filter(None, (self._fault(w, g) for w, g in zip(want["items"], items, strict=True))), "")
        if want["kind"] == "dict":
            items = got.get("items")
            if not isinstance(items, dict) or list(items) != list(want["items"]):
                return f"a dict with other keys than {list(want['items'])}"
            return next(filter(None, (self._fault(w, items[k]) for k, w in want["items"].items())), "")
        return ""

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


def _same_strides(want: protocol.Header, got: protocol.Header) -> bool:
    """Whether strides agree where they matter: a dimension of one element may have any."""
    strides, shape = got.get("strides"), want["shape"]
    if not isinstance(strides, list) or len(strides) != len(shape):
        return False
    return 0 in shape or all(g == w for g, w, n in zip(strides, want["strides"], shape, strict=True) if n > 1)


def _shared(got: protocol.Header) -> str:
    starts = [leaf.get("storage") for leaf in leaves(got) if leaf.get("storage")]
    return "two of its outputs share their memory" if len(set(map(str, starts))) < len(starts) else ""


def _order(leaf: protocol.Header) -> list[Any]:
    """Return a tensor's dimensions from slowest to fastest; those of one element may come anywhere."""
    order, shape = leaf.get("order"), leaf["shape"]
    if 0 in shape:
        return []
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(map(str, range(len(shape)))):
        return [order]
    return [d for d in order if type(d) is not int or shape[d] != 1]


def _words(header: protocol.Header) -> str:
    kind = header.get("kind")
    if kind == "object":
        return str(header.get("type"))
    return "None" if kind == "value" and header.get("value") is None else f"a {kind}"
