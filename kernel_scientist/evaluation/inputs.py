"""Test inputs: new random values, at new or reused addresses, sometimes one 512-byte edit away from earlier ones."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.problems.trees import changed, cloned, items, tensors, with_items
from kernel_scientist.records import layout
from kernel_scientist.records.kernel import Case
from kernel_scientist.sandbox import protocol, storages
from kernel_scientist.workers.places import Content, Places

POISONS = (0xFF, 0x5A, 0x3C)
"""Fill bytes for output buffers: as floats they are NaN, large values, and values near one."""
RUN_BYTES = 512
"""Bytes that are changed to make a neighbour input: few enough that a cache keyed by sampled values misses them."""


@dataclass(frozen=True)
class InputSet:
    """Inputs for one call of every source."""

    case: Case
    data: Any
    """Values in the evaluator's own memory, which no worker can read."""
    fresh: bool
    """Whether the inputs are placed at new addresses."""
    poison: int
    expected: list[Any] = field(default_factory=list[Any], compare=False)
    """The reference's output; empty until it is computed."""

    @property
    def bytes(self) -> int:
        """Size of the storages of all inputs together."""
        return sum({layout.identity(one): one.untyped_storage().nbytes() for one in tensors(self.data)}.values())


class InputTensor(NamedTuple):
    """One tensor of the inputs."""

    tensor: torch.Tensor
    item: int
    """Number of the input that it is, or that contains it."""
    writable: bool
    static: bool
    is_buffer: bool
    """Whether it is an output buffer, whose content does not matter."""


class InputGenerator:
    """Generator of inputs for one problem. Randomness comes from the operating system, so no kernel can predict it."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self._rng = problem, random.SystemRandom()
        self._static: dict[str, dict[int, Any]] = {}

    def draw(self, case: Case, seed: int | None = None) -> InputSet:
        """Return new inputs, from a secret seed if none is given. Static inputs, from a secret seed, stay per case."""
        return self._input_set(case, self._values(case, seed))

    def _values(self, case: Case, seed: int | None = None) -> Any:
        data = self.problem.generate(case, self.problem.secret_seed(self._rng) if seed is None else seed)
        if not self.problem.policy.static:
            return data
        if case.name not in self._static:
            other = self.problem.generate(case, self.problem.secret_seed(self._rng))
            self._static.setdefault(case.name, {i: items(other)[i] for i in self.problem.policy.static})
        return with_items(data, [self._static[case.name].get(i, x) for i, x in enumerate(items(data))])

    def secret(self, profile: Profile, count: int) -> list[Case]:
        """Return `count` random cases from the problem's ranges of sizes; none if it has no ranges."""
        return [case for case in (profile.secret(self._rng) for _ in range(count)) if case]

    def stressed(self, case: Case, scales: dict[int, float]) -> InputSet:
        """Return new inputs, some of them scaled (`stress` in lab.yml)."""
        data = cloned(self._values(case))
        for position, scale in scales.items():
            once = layout.once(items(data)[position])
            once.copy_((once.to(torch.float32) * scale).to(once.dtype))
        return self._input_set(case, data)

    def neighbour(self, inputs: InputSet) -> InputSet:
        """Return a copy with a few bytes of one input changed: a cache keyed by sampled values does not notice."""
        found = items(inputs.data)
        fixed = (*self.problem.writable, *self.problem.policy.static)
        choices = [i for i, x in enumerate(found) if i not in fixed and _can_vary(x)]
        if not isinstance(inputs.data, (tuple, list)) or not choices:
            return self._input_set(inputs.case, inputs.data)
        position = self._rng.choice(choices)
        found = items(cloned(inputs.data, found[position]))
        self._turn(found[position])
        return self._input_set(inputs.case, with_items(inputs.data, found))

    def rows(self, case: Case, calls: int, count: int) -> list[list[InputSet]]:
        """Return the inputs of `count` rows: one new set, and shifted and edited copies of it."""
        first = self.draw(case)
        every = [first, *(self._moved(first) for _ in range(calls * count - 1))]
        self._rng.shuffle(every)
        return [every[row * calls : (row + 1) * calls] for row in range(count)]

    def chosen(self, count: int, most: int) -> list[int]:
        """Return up to `most` unpredictable numbers below `count`."""
        return sorted(self._rng.sample(range(count), min(count, most)))

    def placed(self, inputs: InputSet, memory: Places, slot: int) -> protocol.Header:
        """Return the message that tells a worker where its inputs will be."""
        found, places = self._parts(inputs), list[protocol.Header]()
        numbers = layout.numbers([part.tensor for part in found])
        for number, parts in enumerate(_by_storage(found, numbers)):
            size, static = parts[0].tensor.untyped_storage().nbytes(), any(part.static for part in parts)
            spot = memory.place(slot, number, size, inputs.fresh and not static)
            places.append({"writable": any(part.writable for part in parts), "place": spot})
        return storages.described(inputs.data, lambda index: places[numbers[index]])

    def write(self, inputs: InputSet, memory: Places, slot: int) -> None:
        """Write the values to the announced places in shared memory. Output buffers get garbage."""
        found = self._parts(inputs)
        every = _by_storage(found, layout.numbers([part.tensor for part in found]))
        for number, parts in enumerate(every):
            memory.write(slot, number, _content(parts, inputs.poison, self.problem.policy.aliases))

    def _moved(self, inputs: InputSet) -> InputSet:
        """Rotate every input that may vary along its first dimension and edit one, so that all values change position.

        New inputs are drawn if an input may not vary or is too short to rotate.
        """
        found = items(inputs.data)
        free = [i for i in range(len(found)) if i not in (*self.problem.writes, *self.problem.policy.static)]
        is_one = not isinstance(inputs.data, (tuple, list))
        if is_one or not free or not all(_can_vary(found[i]) and found[i].shape[0] > 1 for i in free) or _share(found):
            return self.draw(inputs.case)
        for i in self.problem.writes:
            found[i] = changed(found[i], layout.like)  # the reference writes there
        for i in free:
            found[i] = _rolled(found[i], 1 + self._rng.randrange(len(found[i]) - 1))
        self._turn(found[self._rng.choice(free)])
        return self._input_set(inputs.case, with_items(inputs.data, found))

    def _parts(self, inputs: InputSet) -> list[InputTensor]:
        """Return the tensors in the order of the tree."""
        found: list[InputTensor] = []
        for i, item in enumerate(items(inputs.data)):
            kind = i in self.problem.writable, i in self.problem.policy.static, i in self.problem.writes
            found += [InputTensor(tensor, i, *kind) for tensor in tensors(item)]
        return found

    def _input_set(self, case: Case, data: Any) -> InputSet:
        fresh, poison = self._rng.random() < 0.5, self._rng.choice(POISONS)
        return InputSet(case, data, fresh, poison)

    def _turn(self, tensor: torch.Tensor) -> None:
        """Rotate a short run of elements in place. Only existing values are used, so that all stay valid."""
        dense = protocol.dense_order(tensor)
        ordered = tensor.permute(dense or list(range(tensor.dim())))
        flat = ordered.reshape(-1)  # a copy if there are gaps
        length = min(flat.numel(), max(2, RUN_BYTES // tensor.element_size()))
        start = self._rng.randrange(flat.numel() - length + 1)
        run = flat.view(_raw(tensor.dtype))[start : start + length]
        run.copy_(run.roll(1 + self._rng.randrange(length - 1)))
        if dense is None:
            ordered.copy_(flat.view(ordered.shape))


def _by_storage(parts: Sequence[InputTensor], numbers: Sequence[int]) -> list[list[InputTensor]]:
    """Return the tensors of each storage."""
    found: list[list[InputTensor]] = [[] for _ in range(max(numbers, default=-1) + 1)]
    for number, part in zip(numbers, parts, strict=True):
        found[number].append(part)
    return found


def _content(parts: Sequence[InputTensor], poison: int, aliases: bool) -> Content:
    """Return what is written to the place of a storage. Gaps between the elements keep the problem's values."""
    views = [layout.View.of(part.tensor) for part in parts]
    returnable = tuple(view.span for part, view in zip(parts, views, strict=True) if part.writable or aliases)
    values, written = layout.raw(parts[0].tensor), [part.tensor for part in parts if part.writable]
    items = tuple(sorted({part.item for part in parts}))
    if not written:
        return Content(values, returnable, protected=True, items=items)
    if len(parts) == 1 and views[0].is_whole:
        return Content(poison if parts[0].is_buffer else values, returnable, items=items)
    if any(part.is_buffer for part in parts):
        values = values.clone()
        for part in parts:
            if part.is_buffer:
                layout.elements(part.tensor, values).fill_(poison)
    fixed = torch.ones_like(values, dtype=torch.bool)
    for tensor in written:
        layout.elements(tensor, fixed).fill_(False)
    return Content(values, returnable, fixed=fixed, items=items)


def _share(inputs: Sequence[Any]) -> bool:
    """Whether tensors of different inputs share memory."""
    owners = [{layout.identity(tensor) for tensor in tensors(item)} for item in inputs]
    return sum(map(len, owners)) > len(set[int]().union(*owners))


def _rolled(tensor: torch.Tensor, shift: int) -> torch.Tensor:
    """Return a tensor rotated along its first dimension, with the same strides."""
    rolled = layout.like(tensor)
    rolled.view(_raw(tensor.dtype))[:shift] = tensor.view(_raw(tensor.dtype))[-shift:]
    rolled.view(_raw(tensor.dtype))[shift:] = tensor.view(_raw(tensor.dtype))[:-shift]
    return rolled


def _can_vary(value: object) -> bool:
    """Whether elements may change position: floating-point values may, integers may be indices and may not."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return False
    return value.numel() > 1 and layout.View.of(value).is_distinct


def _raw(dtype: torch.dtype) -> torch.dtype:
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(dtype.itemsize, dtype)
