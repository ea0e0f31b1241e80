"""Test inputs: new random values, at new or reused addresses, sometimes one 512-byte edit away from earlier ones."""

import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.records.kernel import Case
from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.places import Places
from kernel_scientist.workers.untrusted.outputs import tensors

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
        """Size of all inputs together."""
        return sum(tensor.nbytes for tensor in tensors(self.data))


class Part(NamedTuple):
    """One tensor of the inputs."""

    tensor: torch.Tensor
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
            self._static.setdefault(case.name, {i: other[i] for i in self.problem.policy.static})
        return tuple(self._static[case.name].get(i, x) for i, x in enumerate(data))

    def secret(self, profile: Profile, count: int) -> list[Case]:
        """Return `count` random cases from the problem's ranges of sizes; none if it has no ranges."""
        return [case for case in (profile.secret(self._rng) for _ in range(count)) if case]

    def stressed(self, case: Case, scales: dict[int, float]) -> InputSet:
        """Return new inputs, some of them scaled (`stress` in lab.yml)."""
        items = list(self._values(case))
        for position, scale in scales.items():
            items[position] = (items[position].to(torch.float32) * scale).to(items[position].dtype)
        return self._input_set(case, tuple(items))

    def neighbour(self, inputs: InputSet) -> InputSet:
        """Return a copy with a few bytes of one input changed: a cache keyed by sampled values does not notice."""
        if not isinstance(inputs.data, tuple):
            return self._input_set(inputs.case, inputs.data)
        items = list(inputs.data)  # pyright: ignore[reportUnknownArgumentType]
        fixed = (*self.problem.writable, *self.problem.policy.static)
        choices = [i for i, x in enumerate(items) if i not in fixed and _can_vary(x)]
        if choices:
            position = self._rng.choice(choices)
            items[position] = items[position].clone(memory_format=torch.preserve_format)
            self._turn(items[position])
        return self._input_set(inputs.case, tuple(items))

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
        parts = iter(enumerate(self._parts(inputs)))

        def describe(tensor: torch.Tensor) -> protocol.Header:
            index, part = next(parts)
            spot = memory.place(slot, index, tensor.nbytes, inputs.fresh and not part.static)
            return {**protocol.form(tensor).header(), "writable": part.writable, "place": spot}

        return protocol.described(inputs.data, describe)

    def write(self, inputs: InputSet, memory: Places, slot: int) -> None:
        """Write the values to the announced places in shared memory. Output buffers get garbage."""
        for index, part in enumerate(self._parts(inputs)):
            values = inputs.poison if part.is_buffer else part.tensor
            may_return = part.writable or self.problem.policy.aliases
            memory.write(slot, index, values, may_return, protected=not part.writable)

    def _moved(self, inputs: InputSet) -> InputSet:
        """Rotate every input that may vary along its first dimension and edit one, so that all values change position.

        New inputs are drawn if an input may not vary or is too short to rotate.
        """
        items: list[Any] = list(inputs.data) if isinstance(inputs.data, tuple) else []
        free = [i for i in range(len(items)) if i not in (*self.problem.writes, *self.problem.policy.static)]
        if not free or not all(_can_vary(items[i]) and items[i].shape[0] > 1 for i in free):
            return self.draw(inputs.case)
        for i in self.problem.writes:
            items[i] = torch.empty_like(items[i])  # the reference writes there
        for i in free:
            items[i] = _rolled(items[i], 1 + self._rng.randrange(len(items[i]) - 1))
        self._turn(items[self._rng.choice(free)])
        return self._input_set(inputs.case, tuple(items))

    def _parts(self, inputs: InputSet) -> list[Part]:
        """Return the tensors in the order of the tree."""
        items = inputs.data if isinstance(inputs.data, tuple) else (inputs.data,)
        found: list[Part] = []
        for i, item in enumerate(items):
            kind = i in self.problem.writable, i in self.problem.policy.static, i in self.problem.writes
            found += [Part(tensor, *kind) for tensor in tensors(item)]
        return found

    def _input_set(self, case: Case, data: Any) -> InputSet:
        fresh, poison = self._rng.random() < 0.5, self._rng.choice(POISONS)
        return InputSet(case, data, fresh, poison)

    def _turn(self, tensor: torch.Tensor) -> None:
        """Rotate a short run of elements in place. Only existing values are used, so that all stay valid."""
        order = protocol.dense_order(tensor) or list(range(tensor.dim()))
        flat = tensor.permute(order).reshape(-1)
        length = min(flat.numel(), max(2, RUN_BYTES // tensor.element_size()))
        start = self._rng.randrange(flat.numel() - length + 1)
        run = flat.view(_raw(tensor.dtype))[start : start + length]
        run.copy_(run.roll(1 + self._rng.randrange(length - 1)))


def _rolled(tensor: torch.Tensor, shift: int) -> torch.Tensor:
    """Return a tensor rotated along its first dimension, with the same strides."""
    rolled = torch.empty_like(tensor)
    rolled.view(_raw(tensor.dtype))[:shift] = tensor.view(_raw(tensor.dtype))[-shift:]
    rolled.view(_raw(tensor.dtype))[shift:] = tensor.view(_raw(tensor.dtype))[:-shift]
    return rolled


def _can_vary(value: object) -> bool:
    """Whether elements may change position: floating-point values may, integers may be indices and may not."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return False
    return value.numel() > 1 and protocol.dense_order(value) is not None


def _raw(dtype: torch.dtype) -> torch.dtype:
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(dtype.itemsize, dtype)
