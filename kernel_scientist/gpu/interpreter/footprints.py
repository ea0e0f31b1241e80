"""What the programs of a launch access, found by counting instead of executing them (`capture.counting_interpreter`).

Which programs write to given addresses is found without counting each of them if the addresses are a mixed-radix number
of the program's: the case of tiles in any row- or column-major order, in full groups, with or without a split of k.
Runs in the worker: imports the standard library, numpy, torch and triton only.
"""

import functools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from kernel_scientist.gpu.capture.counting_interpreter import (
    GUESS,
    ROUNDS,
    Counter,
    EndlessError,
    counting,
    interpreter,
    restored,
    rounds_of,
)
from kernel_scientist.gpu.interpreter import ranges
from kernel_scientist.gpu.interpreter.ranges import Array

SAMPLE = 3
"""Programs whose accesses stand for those of all: which tensors a launch reads and writes, and whether atomically."""
MOST_IN_ORDER = 512
"""Programs of a launch with atomic operations that are recorded one after the other."""
VERIFIED = 12
"""Programs on which a rule for the addresses is tried out."""


class TooLargeError(Exception):
    """The programs of a tile could not be found within the limit."""


class UnknownError(Exception):
    """What a program accesses depends on values that only its execution shows."""


@dataclass
class Budget:
    """A limit on CPU time."""

    seconds: float
    _start: float = field(default_factory=time.process_time)

    def spend(self, launch: "Launch") -> None:
        """Raise TooLargeError if the time is over."""
        if time.process_time() - self._start > self.seconds:
            what = f"{launch.name} with {launch.programs} programs"
            raise TooLargeError(f"{what}: finding the programs of one tile took longer than {self.seconds:g} s")


@dataclass(frozen=True)
class Footprint:
    """Addresses that a program accesses. Atomic updates are among the reads and the writes."""

    reads: Array
    writes: Array
    is_atomic: bool


class _Recorder(Counter):
    """Records the addresses of a program's accesses."""

    def __init__(self, known: Sequence[tuple[int, int]], readable: Array) -> None:
        """`readable`: memory of which reads are recorded. Rounds of loops without a recorded access are left out."""
        super().__init__(known=known, atomics=True)
        self.readable = readable
        self.found: dict[str, list[Array]] = {"load": [], "store": [], "atomic": []}

    def range(self, *bounds: Any, step: Any = None, **_: Any) -> Iterator[int]:
        """Iterate over a loop."""
        rounds, before = rounds_of(bounds, step), self._recorded()
        for done, number in enumerate(rounds):
            if done < ROUNDS or number == rounds[-1] or self._recorded() > before:
                yield number

    def _recorded(self) -> int:
        return sum(map(len, self.found.values()))

    def guess(self, line: int) -> None:
        """Raise UnknownError for a branch that depends on a value that is not computed."""
        raise UnknownError(f"line {line} branches on values that other programs or the inputs hold")

    def touch(self, pointers: Any, mask: Any, access: str) -> None:
        """Record an access. Raises UnknownError if its addresses or its mask are not computed."""
        self.count()
        if access == "load" and not len(self.readable):
            return
        if pointers.attr.get(GUESS) or getattr(mask, "attr", {}).get(GUESS):
            raise UnknownError("addresses or masks depend on values that other programs or the inputs hold")
        active = pointers.data
        if mask is not None:
            active = active[np.broadcast_to(mask.data, active.shape)]
        if active.size:
            size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
            if access == "load" and not self._is_readable(int(active.min()), int(active.max()) + size):
                return
            self.found[access].append(ranges.of_accesses(active, size))

    def _is_readable(self, first: int, end: int) -> bool:
        return bool(ranges.overlapping(np.array([[first, end]]), self.readable).any())

    def footprint(self) -> Footprint:
        """Return the accesses so far, and begin anew."""
        loads, stores, atomics = (ranges.merged(self.found[name]) for name in ("load", "store", "atomic"))
        self.accesses = 0
        for each in self.found.values():
            each.clear()
        return Footprint(ranges.merged([loads, atomics]), ranges.merged([stores, atomics]), len(atomics) > 0)


@dataclass
class Launch:
    """A launch that was not executed; its tensors stay alive, so addresses remain unique."""

    function: Callable[..., Any]
    """What the interpreter executes of the kernel."""
    arguments: dict[str, Any]
    tensors: list[torch.Tensor]
    grid: tuple[int, int, int]
    known: list[tuple[int, int]]
    """Memory whose integers are real."""
    budget: Budget
    is_executed: bool = False
    """Whether the survey has executed it, because it writes integers that others may read addresses from."""
    _whole: list[Array] = field(default_factory=list[Array])
    """Writes of the programs whose reads were recorded as well."""

    @property
    def name(self) -> str:
        """Return the kernel's name."""
        return self.function.__name__

    @property
    def programs(self) -> int:
        """Return the number of programs."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def footprints(self, programs: Sequence[int], readable: Array = ranges.NONE) -> list[Footprint]:
        """Return what programs write, and what they read of the `readable` memory, if they run one after the other."""
        recorder, builder = _Recorder(self.known, readable), interpreter.interpreter_builder
        found: list[Footprint] = []
        with restored(self.known), counting(self.function, recorder):
            builder.set_grid_dim(*self.grid)
            for number in programs:
                self.budget.spend(self)
                x, rest = number % self.grid[0], number // self.grid[0]  # x runs fastest, as in dispatch order
                builder.set_grid_idx(x, rest % self.grid[1], rest // self.grid[1])
                try:
                    self.function(**self.arguments)
                except EndlessError as error:
                    raise UnknownError(str(error)) from error
                found.append(recorder.footprint())
        self._whole += [one.writes for one in found if len(readable)]
        return found

    @functools.cached_property
    def sample(self) -> list[Footprint]:
        """The writes of some programs. If they are unknown: all of its memory, as if updated atomically."""
        numbers = sorted({self.programs * i // SAMPLE for i in range(SAMPLE if self.programs else 0)})
        try:
            return self.footprints(numbers)
        except UnknownError:
            return [Footprint(self.memory, self.memory, True)]

    @property
    def memory(self) -> Array:
        """The storages of its tensors."""
        return ranges.merged([ranges.storage(tensor) for tensor in self.tensors])

    @property
    def is_atomic(self) -> bool:
        """Whether it uses atomic operations."""
        return any(one.is_atomic for one in self.sample)

    @functools.cached_property
    def written(self) -> Array:
        """The storages that it writes."""
        places = ranges.merged([one.writes for one in self.sample])
        storages = [ranges.storage(tensor) for tensor in self.tensors]
        return ranges.merged([one for one in storages if ranges.overlapping(one, places).any()])

    def every_program(self) -> set[int]:
        """Return all programs. Raises TooLargeError for too many."""
        if self.programs > MOST_IN_ORDER:
            raise TooLargeError(f"{self.name} with {self.programs} programs: only executing all shows what they access")
        return set(range(self.programs))

    def overwritten(self) -> dict[int, Array | None]:
        """Return what its programs may write: by position of the tensor, ranges of bytes of its storage. None: anywhere
        in it, as far as known."""
        found: dict[int, Array | None] = {}
        written = ranges.merged([self.written, *self._whole])
        for position, tensor in enumerate(self.tensors):
            if ranges.overlapping(whole := ranges.storage(tensor), written).any():
                try:
                    found[position] = np.clip(self.places(whole), *whole[0]) - whole[0, 0]
                except (TooLargeError, UnknownError):
                    found[position] = None
        return found

    def places(self, within: Array) -> Array:
        """Return the addresses of storages that its programs write together. May raise TooLargeError."""
        if self.is_atomic:  # what a program writes may depend on those before it
            if self.programs > MOST_IN_ORDER:
                raise TooLargeError(f"{self.name} with {self.programs} programs: they depend on each other")
            return ranges.merged([one.writes for one in self.footprints(range(self.programs))])
        if not ranges.overlapping(self.written, within).any():
            return ranges.NONE
        written = self._every_write[1]
        return ranges.merged([written[ranges.overlapping(written, within)]])

    def writers(self, places: Array) -> set[int]:
        """Return the programs that write to a set of addresses."""
        if not ranges.overlapping(self.written, places).any():
            return set()
        try:
            numbers, written = self._every_write
        except UnknownError:
            return self.every_program()
        return set(numbers[ranges.overlapping(written, places)].tolist())

    @functools.cached_property
    def _every_write(self) -> tuple[Array, Array]:
        """Ranges that programs write, and the number of the program of each; perhaps more at the edges of a grid."""
        found = _by_rule(self)
        if found is None:
            each = self.footprints(range(self.programs))
            found = [(number, one.writes) for number, one in enumerate(each)]
            return np.repeat([n for n, _ in found], [len(w) for _, w in found]), np.concatenate([w for _, w in found])
        return found


def _by_rule(launch: Launch) -> Any:
    """Return what every program writes, by a rule for the addresses; None if there is no simple one."""
    (first,) = launch.footprints([0])
    storages = [one for t in launch.tensors if ranges.overlapping(one := ranges.storage(t), launch.written).any()]
    parts = [first.writes[ranges.overlapping(first.writes, one)] for one in storages]
    if not all(len(part) for part in parts):
        return None

    def shifts(number: int) -> Array | None:
        """Return by how much a program's writes are shifted from those of the first, by storage."""
        (one,) = launch.footprints([number])
        mine = [one.writes[ranges.overlapping(one.writes, place)] for place in storages]
        if not all(len(part) for part in mine):
            return None
        found = np.array([part[0, 0] - other[0, 0] for part, other in zip(mine, parts, strict=True)])
        fits = all(ranges.covered(part, other + by) for part, other, by in zip(mine, parts, found, strict=True))
        return found if fits else None

    levels: list[tuple[int, int, Array]] = []
    unit = 1
    while unit < launch.programs:
        step = shifts(unit)
        if step is None:
            return None
        count = _count(lambda n, unit=unit, step=step: _same(shifts(n * unit), n * step), -(-launch.programs // unit))
        levels.append((unit, count, step))
        unit *= count

    def shifted(numbers: Array) -> Array:
        return sum((numbers // u % c)[:, None] * step for u, c, step in levels) + np.zeros((len(numbers), len(parts)))

    rng = random.Random(launch.programs)
    for number in {launch.programs - 1, *(rng.randrange(launch.programs) for _ in range(VERIFIED))}:
        if not _same(shifts(number), shifted(np.array([number]))[0]):
            return None
    every = shifted(np.arange(launch.programs)).astype(np.int64)
    written = [(part[None] + every[:, i, None, None]).reshape(-1, 2) for i, part in enumerate(parts)]
    numbers = [np.repeat(np.arange(launch.programs), len(part)) for part in parts]
    return np.concatenate(numbers), np.concatenate(written)


def _count(is_linear: Callable[[int], bool], most: int) -> int:
    """Return how many multiples from 0 on are linear: 2 to `most`."""
    low, high = min(2, most), 2
    while high < most and is_linear(high):
        low, high = high + 1, high * 2
    high = min(high, most)
    while low < high:  # the multiples below `low` are linear; those from `high` on are not, or do not exist
        middle = (low + high) // 2
        low, high = (middle + 1, high) if is_linear(middle) else (low, middle)
    return low


def _same(one: Array | None, other: Array) -> bool:
    return one is not None and bool((one == other).all())
