"""Is an output right: first that it is the kind of object that was asked for, then its values.

The expected output is computed here, after the kernel has ended its call, and never leaves this process.
"""

from typing import Any

from kernel_scientist.evaluate.correctness.inputs import Delivery
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.untrusted.buffers import on_device

SPARE, SPARE_BYTES = 16, 64 << 20
"""How many times as large as a right output a wrong one may be to be told by its form, and how large anyway."""


class Comparison:
    """Compares outputs of one problem. The form of a right output is found once per case."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._forms: dict[str, protocol.Header] = {}

    def require(self, delivery: Delivery, got: protocol.Header, buffers: list[bytearray]) -> None:
        """Raise KernelFailure unless the output that a worker handed over is right for what it was given."""
        name = delivery.case.name
        if fault := self._fault(self._form(delivery), got):
            raise KernelFailure(Verdict.INCORRECT, f"{name}: it returned {fault}")
        for leaf, right in zip(leaves(got), leaves(self._form(delivery)), strict=True):
            if _order(leaf) != _order(right):  # its strides are the right ones, so its bytes are in that order
                raise KernelFailure(Verdict.REJECTED, f"{name}: its output is not data: its strides say another order")
        try:
            output = protocol.decode(
                got, buffers, None if self.problem.device == "cpu" else on_device(self.problem.device)
            )
        except protocol.WireError as error:
            raise KernelFailure(Verdict.REJECTED, f"{name}: its output is not data: {error}") from error
        if fault := _shared(got) or self._alias(delivery, got, output):
            raise KernelFailure(Verdict.INCORRECT, f"{name}: {fault}")
        good, message = self.problem.check(delivery.data, output)
        if not good:
            raise KernelFailure(Verdict.INCORRECT, f"{name}: {message}")

    def room(self, delivery: Delivery) -> int:
        """Return how many bytes of output are taken from a worker."""
        right = sum(protocol.Form.read(leaf).bytes for leaf in leaves(self._form(delivery)))
        return max(SPARE * right, SPARE_BYTES)

    def visible(self, delivery: Delivery) -> bool:
        """Whether all of a right output can be seen where it lies: tensors without gaps."""
        form = self._form(delivery)
        items = form["items"] if form["kind"] in ("list", "tuple") else [form]
        return any(_bytes(item) for item in items) and all(_contiguous(item) for item in items)

    def _form(self, delivery: Delivery) -> protocol.Header:
        name = delivery.case.name
        if name not in self._forms:
            self._forms[name] = described(self.problem.reference(delivery.data))
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

    def _alias(self, delivery: Delivery, got: protocol.Header, output: Any) -> str:
        """Return how an output's memory is not its own, or nothing."""
        if self.problem.policy.aliases or not isinstance(delivery.data, tuple):
            return ""
        for leaf, tensor in zip(leaves(got), _tensors(output), strict=True):
            position = leaf.get("input")
            if position is not None and position not in self.problem.writes:
                return f"the memory of its output is that of input {position}"
            if position is None and leaf.get("storage_bytes") != tensor.nbytes:
                return f"its output of {tensor.nbytes} bytes is part of a storage of {leaf.get('storage_bytes')}"
        return ""


def _contiguous(item: protocol.Header) -> bool:
    if item["kind"] != "tensor":
        return False
    step, steps = 1, list[int]()
    for size in reversed(item["shape"]):
        steps.insert(0, step)
        step *= size
    return _same_strides({**item, "strides": steps}, item)


def _bytes(item: protocol.Header) -> bool:
    return item["kind"] == "tensor" and 0 not in item["shape"]


def described(output: Any) -> protocol.Header:
    """Return what a right output must look like."""
    header = protocol.encode(output, [])
    for leaf, tensor in zip(leaves(header), _tensors(output), strict=True):
        leaf |= {"strides": list(tensor.stride()), "device": tensor.device.type}
    return header


def leaves(header: protocol.Header) -> list[protocol.Header]:
    """Return the tensors of a description, in order."""
    if header.get("kind") == "tensor":
        return [header]
    items: Any = header.get("items", [])
    return [leaf for item in (items.values() if isinstance(items, dict) else items) for leaf in leaves(item)]


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
