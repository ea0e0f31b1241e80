"""Chooses programs that together compute one tile of the output, so that launches of any size can be checked by value.

    plan = choose(kernel, data, draws, seconds)        # calls the kernel, without executing its programs
    with checker.watched(data, writable, plan=plan): output = kernel(data)

A program of the last launch is drawn. Added are the programs that write where it writes (splits of k that add to one
tile), those that it exchanges data with in its launch (a lock), and those of earlier launches that wrote what it reads;
torch's operations between launches are followed. Runs in the worker: imports the standard library, numpy, torch and
triton only.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernel_scientist.gpu.capture.counting_interpreter import integers, interpreter
from kernel_scientist.gpu.interpreter import ranges, torch_ops
from kernel_scientist.gpu.interpreter.footprints import MOST_IN_ORDER, Budget, Launch, TooLargeError, UnknownError
from kernel_scientist.gpu.interpreter.ranges import Array
from kernel_scientist.gpu.interpreter.torch_ops import named

MANY = 16
"""Programs from which on no second tile is executed."""


@dataclass(frozen=True)
class Plan:
    """The programs to execute, by launch."""

    launches: list[tuple[str, int]]
    """Kernel and number of programs."""
    programs: list[set[int]]
    overwritten: list[dict[int, Array | None]]
    """What the programs of a launch may write (see `Launch.overwritten`)."""
    skipped: list[str]
    """Why programs of a launch were not chosen."""
    unwritten: int
    """Elements of the output that no program writes."""

    def message(self) -> dict[str, Any]:
        """Return what is executed as values that JSON can hold."""
        rows = zip(self.launches, self.programs, strict=True)
        launches = [[name, len(chosen), total] for (name, total), chosen in rows]
        return {"launches": launches, "skipped": self.skipped, "unwritten": self.unwritten}

    def programs_of(self, launch: int) -> set[int]:
        """Return the programs of a launch; none if the call that was surveyed had no such launch."""
        return self.programs[launch] if launch < len(self.programs) else set()

    def overwritten_by(self, launch: int, tensors: int) -> dict[int, Array | None]:
        """Return what a launch with so many tensors may write; all of them if it was not surveyed."""
        return self.overwritten[launch] if launch < len(self.overwritten) else dict.fromkeys(range(tensors))


@dataclass(frozen=True)
class _Operation:
    """One of torch's operations between launches."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    result: torch.Tensor
    operands: list[torch.Tensor]

    def places(self) -> Array:
        """Return the addresses that it may write."""
        return ranges.of_mask(torch.ones(self.result.shape, dtype=torch.bool), self.result)

    def reached(self, places: Array) -> Array:
        """Return which elements of the result depend on a set of addresses."""
        if not self.operands:
            return ranges.NONE
        masks = [ranges.to_mask(places, one) for one in self.operands]
        return ranges.of_mask(self._mapped([mask.to(torch.int16) for mask in masks]) > 0, self.result)

    def needed(self, places: Array) -> Array:
        """Return the addresses of operands that a set of the result's addresses depends on."""
        if not len(places):
            return ranges.NONE
        wanted = ranges.to_mask(places, self.result)
        if not bool(wanted.any()):
            return ranges.NONE
        return ranges.merged([self._needed_of(i, wanted) for i in range(len(self.operands))])

    def _needed_of(self, position: int, wanted: torch.Tensor) -> Array:
        """Find the elements by the order of their numbers, from the last to the first of those that share a result."""
        operand = self.operands[position]
        numbers = torch.arange(1, operand.numel() + 1, dtype=torch.int32).reshape(operand.shape)
        chosen = torch.zeros(operand.numel() + 1, dtype=torch.bool)
        while True:
            blank = [torch.zeros(one.shape, dtype=torch.int32) for one in self.operands]
            blank[position] = numbers
            found = torch.unique(self._mapped(blank)[wanted])
            if not bool(found.any()):
                return ranges.of_mask(chosen[1:].reshape(operand.shape), operand)
            chosen[found.long()] = True
            numbers = torch.where(chosen[numbers.long()], 0, numbers)

    def _mapped(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return, for each element of the result, the largest value of the elements that it depends on."""
        name, shape = self.function.__name__, self.result.shape
        if name == "__setitem__":
            blank = torch.zeros(shape, dtype=values[0].dtype)
            blank[self.arguments[1]] = values[0]
            return blank
        if name in torch_ops.SUMMING:
            dim = self.options.get("dim", self.arguments[1] if len(self.arguments) > 1 else None)
            largest = values[0].amax() if dim is None else values[0].amax(dim)
            return largest.reshape(shape)
        if name in torch_ops.LOOKING:
            return self.function(values[0], *self.arguments[1:], **self.options)
        if all(torch_ops.fits(one, self.result) for one in values):
            return torch.stack([one.broadcast_to(shape) for one in values]).amax(0)
        return torch.stack([one.amax() for one in values]).amax().expand(shape)


class _Survey(TorchFunctionMode):
    """Records launches instead of executing them, and the operations of torch between them."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.steps: list[Launch | _Operation] = []
        self._budget = budget
        self._unreal: set[int] = set()
        """Addresses of storages that launches would have written."""
        self._executing = False

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        for written in [] if self._executing else torch_ops.written(name, args, kwargs, result):
            reading = (args[1:] if name in torch_ops.OVERWRITING else args, kwargs)
            operands = [one for one in torch_ops.tensors(reading) if one is not written and one.numel()]
            if written.numel():
                self.steps.append(_Operation(func, args, kwargs, written, operands))
            if any(one.untyped_storage().data_ptr() in self._unreal for one in operands):
                self._unreal.add(written.untyped_storage().data_ptr())
        return result

    def launched(self, execute: Callable[[], Any], executor: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Record a launch, in place of `GridExecutor.__call__`. `execute` runs it.

        It is executed if it writes integers only, as later launches may read addresses from there.
        """
        signature = inspect.signature(executor.fn)
        given = {k: v for k, v in kwargs.items() if k in signature.parameters}
        bound = signature.bind(*args, **given)
        bound.apply_defaults()
        constants: list[str] = executor.constexprs
        arguments = {n: a if n in constants else interpreter._implicit_cvt(a) for n, a in bound.arguments.items()}
        sizes: Any = executor.grid(arguments) if callable(executor.grid) else executor.grid
        x, y, z = (*(int(n) for n in sizes), 1, 1)[:3]
        found = [tensor for _, tensor in named(executor.arg_names, args, given)]
        launch = Launch(executor.fn, arguments, found, (x, y, z), integers(found, self._unreal), self._budget)
        self.steps.append(launch)
        storages = {tensor.untyped_storage().data_ptr(): tensor for tensor in found}
        written = [
            place for place, one in storages.items() if ranges.overlapping(launch.written, ranges.storage(one)).any()
        ]
        if all(integers([storages[place]], ()) for place in written) and not self._unreal & set(storages):
            launch.is_executed = launch.programs <= MOST_IN_ORDER
        if launch.is_executed:
            self._executing = True
            try:
                execute()
            finally:
                self._executing = False
        else:
            self._unreal.update(written)


def choose(kernel: Callable[[Any], Any], data: Any, draws: Sequence[float], seconds: float) -> Plan:
    """Return the programs that compute one tile per draw.

    draws: numbers from 0 to 1, the place of the drawn program in its grid. seconds: limit of CPU time. Raises any
    exception of the kernel.
    """
    survey = _Survey(Budget(seconds))
    before = interpreter.GridExecutor.__call__

    def launched(executor: Any, *args: Any, **kwargs: Any) -> None:
        survey.launched(lambda: before(executor, *args, **kwargs), executor, args, kwargs)

    interpreter.GridExecutor.__call__ = launched
    try:
        with survey:
            output = kernel(data)
    finally:
        interpreter.GridExecutor.__call__ = before
    launches = [step for step in survey.steps if isinstance(step, Launch)]
    chosen: dict[int, set[int]] = {id(launch): set() for launch in launches}
    skipped: list[str] = []
    for launch in reversed(launches):
        for draw in draws if not chosen[id(launch)] and launch.programs else ():
            try:
                found = _tile(survey.steps, launch, min(int(draw * launch.programs), launch.programs - 1))
            except TooLargeError as error:
                skipped.append(str(error))
                break
            for key, programs in found.items():
                chosen[key] |= programs
            if sum(len(programs) for programs in found.values()) > MANY:
                break
    for launch in launches:
        if launch.is_executed:  # the survey's choice rests on its results
            chosen[id(launch)] = launch.every_program()
    names = [(launch.name, launch.programs) for launch in launches]
    try:
        unwritten = _unwritten(survey.steps, output)
    except (TooLargeError, UnknownError) as error:
        unwritten, skipped = 0, [*skipped, f"whether every element of the output is written is unknown: {error}"]
    return Plan(names, list(chosen.values()), [launch.overwritten() for launch in launches], skipped, unwritten)


def _unwritten(steps: Sequence[Launch | _Operation], output: Any) -> int:
    """Return the number of elements of the output that nothing writes."""
    found = 0
    for tensor in torch_ops.tensors(output):
        whole, left = ranges.storage(tensor), torch.ones(tensor.shape, dtype=torch.bool)
        for step in steps:
            written = step.places() if isinstance(step, _Operation) else step.places(whole)
            if ranges.overlapping(written, whole).any():
                left &= ~ranges.to_mask(written, tensor)
        found += int(left.sum())
    return found


def _tile(steps: Sequence[Launch | _Operation], last: Launch, number: int) -> dict[int, set[int]]:
    """Return the programs, by the identity of their launch, that compute what a program writes."""
    chosen = {id(last): {number}}
    if len(steps) == 1 and not last.is_atomic:
        return chosen
    at = next(i for i, step in enumerate(steps) if step is last)
    try:
        needed = ranges.merged([one.writes for one in last.footprints([number])])
    except UnknownError:
        needed = last.memory
    for step in steps[at + 1 :]:  # what torch makes of it
        if isinstance(step, _Operation):
            needed = ranges.merged([needed, step.reached(needed)])
    for position, step in reversed(list(enumerate(steps))):
        if isinstance(step, _Operation):
            needed = ranges.merged([needed, step.needed(needed)])
        elif writers := step.writers(needed):
            earlier = [one.places() if isinstance(one, _Operation) else one.written for one in steps[:position]]
            programs, reads = _exchanging(step, writers, ranges.merged(earlier))
            chosen[id(step)] = programs | chosen.get(id(step), set())
            needed = ranges.merged([needed, *reads])
    return chosen


def _exchanging(launch: Launch, programs: set[int], earlier: Array) -> tuple[set[int], list[Array]]:
    """Return the programs of a launch that exchange data with some of its programs, these included.

    Also return what they read of `earlier`, the memory that steps before it write.
    """
    readable = ranges.merged([earlier, launch.written]) if launch.is_atomic else earlier
    while True:
        try:
            found = launch.footprints(sorted(programs), readable)
        except UnknownError:
            return launch.every_program(), [launch.memory]
        if not launch.is_atomic:
            return programs, [one.reads for one in found]
        more = programs | launch.writers(ranges.merged([place for one in found for place in (one.reads, one.writes)]))
        if more == programs:
            return programs, [one.reads for one in found]
        programs = more
