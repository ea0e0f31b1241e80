"""A memory checker for interpreted Triton kernels; a GPU would not report these defects.

    with watched(data, writable_positions) as report:
        output = custom_kernel(data)
    report.message(output)

It reports, with kernel, line, program and element: reads and writes out of bounds; and, if an address, a branch or an
output depends on them: memory that was never written, lanes that a mask without `other` switches off, and values that
depend on the order in which the programs of a launch run. Values without effect on a result are no defect, such as
padding that is read and discarded. Programs that write the same value do not race.

Bounds are those of the storage that a pointer was made from. An access that runs from one row into the next is not
reported; its values are wrong instead. Runs in the worker; imports only the standard library, numpy, torch and triton.
"""

import contextlib
import inspect
from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from kernel_scientist.gpu.capture.counting_interpreter import deciding
from kernel_scientist.gpu.capture.fake_device import replaced
from kernel_scientist.gpu.interpreter.accesses import Accesses
from kernel_scientist.gpu.interpreter.addresses import Addresses, Launch
from kernel_scientist.gpu.interpreter.allocations import TAG_SHIFT, Allocation, Allocations, State
from kernel_scientist.gpu.interpreter.defect import UNKNOWN, Array, Defect, Ledger
from kernel_scientist.gpu.interpreter.races import History
from kernel_scientist.gpu.interpreter.tiles import Plan
from kernel_scientist.gpu.interpreter.torch_ops import TorchSide, named, tensor_of, tensors
from kernel_scientist.gpu.interpreter.undefined import following, following_reductions, interpreter

MOST_RUNS, CHUNK = 100_000, 1 << 20


class Report:
    """The result of one watched call."""

    def __init__(self, ledger: Ledger, outputs: list[torch.Tensor], allocations: Allocations) -> None:
        self._ledger, self._outputs, self._allocations = ledger, outputs, allocations
        self.launches = self.programs = self.programs_run = 0

    def defects(self, output: Any = None) -> tuple[Defect, ...]:
        """Return the defects, including those that show only in the outputs (the writable inputs and `output`)."""
        for tensor in [*self._outputs, *tensors(output)]:
            allocation = self._allocations.known(tensor)
            codes = None if allocation is None else allocation.codes_of(tensor)
            if codes is not None:
                self._ledger.reach(codes.numpy())
        return self._ledger.defects()

    def known(self, output: Any) -> list[list[tuple[int, int]]]:
        """Return the elements of each output tensor that the executed programs computed, as (first, count) in its
        flattened order."""
        return [_runs(self._allocations, tensor) for tensor in tensors(output)]

    def message(self, output: Any = None) -> dict[str, Any]:
        """Return defects and coverage as values that JSON can hold.

        `output` is what the kernel returned; without it only the writable inputs count as outputs.
        """
        defects = [defect.message() for defect in self.defects(output)]
        coverage = {"launches": self.launches, "programs": self.programs, "programs_run": self.programs_run}
        return {"defects": defects, "defects_total": self._ledger.total, "coverage": coverage}


@contextlib.contextmanager
def watched(
    data: Any, writable: Collection[int] = (), defined: Collection[int] = (), plan: Plan | None = None
) -> Generator[Report]:
    """Check every launch of interpreted kernels within the context.

    `data` is the problem's input, a tensor or a sequence; `writable` are the positions that a kernel may write,
    `defined` those of them whose contents the problem defines (the others must be written before they are read). With
    a `plan` only its programs run, and memory that others may have written is unknown.
    """
    watcher = Watcher(data, writable, defined, plan)
    with watcher.torch_side, watcher.installed():
        yield watcher.report


class Watcher:
    """Installs hooks in the interpreter while one call is watched."""

    def __init__(self, data: Any, writable: Collection[int], defined: Collection[int], plan: Plan | None) -> None:
        self.allocations, self.ledger, self.plan = Allocations(), Ledger(), plan
        self.torch_side = TorchSide(self.allocations, partial=plan is not None)
        self.history = History(self.ledger)
        self.accesses = Accesses(Addresses(self.allocations, self.ledger), self.history, self.ledger)
        self.report = Report(self.ledger, self._inputs(data, writable, defined), self.allocations)
        self.reverse = False
        self._next_base = 0

    def _inputs(self, data: Any, writable: Collection[int], defined: Collection[int]) -> list[torch.Tensor]:
        """Register the inputs; return those that are outputs."""
        items = list(data) if isinstance(data, list | tuple) else [data]
        outputs: list[torch.Tensor] = []
        for position, item in sorted(enumerate(items), key=lambda each: each[0] not in writable):
            for tensor in tensors(item):
                allocation = self.allocations.of(tensor, writable=position in writable)
                if allocation is not None and position in writable:
                    outputs.append(tensor)
                    if position not in defined:
                        allocation.undefine(tensor)
        return outputs

    def installed(self) -> AbstractContextManager[None]:
        """Return a context within which the hooks are installed."""
        builder = interpreter.InterpreterBuilder
        places = [(builder, name, value) for name, value in {**following(), **self.accesses.operations()}.items()]
        places += [(interpreter.ReduceScanOpInterface, "apply", following_reductions())]
        places += [(builder, "set_grid_dim", self._grid(builder.set_grid_dim))]
        places += [(builder, "set_grid_idx", self._program(builder.set_grid_idx))]
        places += [(interpreter, "_implicit_cvt", self._tagging(interpreter._implicit_cvt))]
        places += [(interpreter, "_patch_lang_tensor", self._deciding(interpreter._patch_lang_tensor))]
        places += [(interpreter.GridExecutor, "__call__", self._launching(interpreter.GridExecutor.__call__))]
        return replaced(places)

    def _launching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def launch(executor: Any, *args: Any, **kwargs: Any) -> Any:
            found = dict(named(executor.arg_names, args, kwargs))
            with self.torch_side.suspended():
                before = [State(allocation) for allocation in self._touched(found.values())] if not self.plan else []
                run = self._begin(executor, found)
                try:
                    result = original(executor, *args, **kwargs)
                finally:
                    self._count(run)
                if self.plan is not None and run.run < run.total:
                    self._forget(list(found.values()), run)
                elif self.plan is None and run.suspects and not run.atomics:
                    self._confirm(lambda: original(executor, *args, **kwargs), run, before)
            return result

        return launch

    def _touched(self, found: Any) -> list[Allocation]:
        known = {id(a): a for tensor in found if (a := self.allocations.of(tensor)) is not None and a.writable}
        return list(known.values())

    def _begin(self, executor: Any, found: dict[str, torch.Tensor]) -> Launch:
        names = {self.allocations.tag(tensor): name for name, tensor in reversed(found.items())}
        names.pop(0, None)
        run = Launch(executor.fn.__name__, names, self._next_base)
        if self.plan is not None:
            run.partial = True
            executor.fn = Chosen(executor.fn, run, self.plan.programs_of(self.report.launches))
        self.history.launch = run
        return run

    def _count(self, run: Launch) -> None:
        self._next_base = run.everyone
        self.report.launches += 1
        self.report.programs += run.total
        self.report.programs_run += run.run

    def _forget(self, arguments: list[torch.Tensor], run: Launch) -> None:
        """Mark memory that programs outside of the plan may have written as unknown."""
        assert self.plan is not None
        for position, places in self.plan.overwritten_by(self.report.launches - 1, len(arguments)).items():
            if (allocation := self.allocations.of(arguments[position])) is not None:
                _forget_others(allocation, run, places)

    def _confirm(self, again: Callable[[], Any], run: Launch, before: list["State"]) -> None:
        """Some programs wrote memory that others had read before. Run them in reverse order, so that the others read
        the new values.

        That shows whether a result depends on it. Memory is restored to the state after the first run.
        """
        after = [State(state.allocation) for state in before]
        for state in before:
            state.restore()
        self.reverse = self.ledger.only_races = True
        self.history.launch = Launch(run.kernel, run.names, self._next_base)
        try:
            again()
        finally:
            self.reverse = self.ledger.only_races = False
            self._next_base = self.history.launch.everyone
            for state in after:
                raced = _only(state.allocation.codes, self.ledger.races)
                state.restore()
                if raced is not None:
                    state.allocation.codes = np.maximum(state.allocation.shadow("codes"), raced)

    def _grid(self, original: Callable[..., None]) -> Callable[..., None]:
        def set_grid_dim(builder: Any, *grid: int) -> None:
            original(builder, *grid)
            self.history.launch.grid = (int(grid[0]), int(grid[1]), int(grid[2]))
            self.history.begin(self.history.launch)

        return set_grid_dim

    def _program(self, original: Callable[..., None]) -> Callable[..., None]:
        def set_grid_idx(builder: Any, *index: int) -> None:
            run = self.history.launch
            x, y, z = (n - 1 - i if self.reverse else i for n, i in zip(run.grid, index, strict=True))
            original(builder, x, y, z)
            run.program = (x, y, z)
            run.me = run.base + 1 + (x * run.grid[1] + y) * run.grid[2] + z
            run.run += 1
            self.history.next_program()

        return set_grid_idx

    def _deciding(self, original: Callable[..., None]) -> Callable[..., None]:
        def patch(tensor: Any, scope: Any) -> None:
            original(tensor, scope)
            for name in ("__bool__", "__index__"):
                scope.set_attr(tensor, name, deciding(self.accesses.decide, getattr(tensor, name)))

        return patch

    def _tagging(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def convert(arg: Any) -> Any:
            made = original(arg)
            if (tensor := tensor_of(arg)) is not None:
                made.handle.data = made.handle.data | np.uint64(self.allocations.tag(tensor) << TAG_SHIFT)
            return made

        return convert


def _forget_others(allocation: Allocation, run: Launch, places: Array | None) -> None:
    """Mark as unknown what a launch may have written, except by its executed programs. `places`: ranges of bytes."""
    shadows = [s for s in (allocation.writer, allocation.updater) if s is not None]
    codes = allocation.shadow("codes")
    ends = [(0, len(codes))] if places is None else (places // allocation.grain).tolist()
    for first, last in ends:
        for start in range(first, last, CHUNK):  # an allocation may have 10^8 elements
            part = slice(start, min(last, start + CHUNK))
            others = np.ones(part.stop - part.start, np.bool_)
            for shadow in shadows:
                others &= np.abs(shadow[part]) <= run.base
            codes[part][others] = UNKNOWN


def _runs(allocations: Allocations, tensor: torch.Tensor) -> list[tuple[int, int]]:
    allocation = allocations.known(tensor)
    codes = None if allocation is None else allocation.codes_of(tensor)
    known = np.ones(tensor.numel(), np.int8) if codes is None else (codes.amax(-1).numpy() == 0).ravel().astype(np.int8)
    edges = np.flatnonzero(np.diff(known, prepend=np.int8(0), append=np.int8(0)))
    return [(int(first), int(end - first)) for first, end in zip(edges[::2], edges[1::2], strict=True)][:MOST_RUNS]


def _only(codes: Array | None, kept: set[int]) -> Array | None:
    return None if codes is None else np.where(np.isin(codes, list(kept)), codes, np.int16(0))


class Chosen:
    """Replaces a kernel's function in a launch: runs some of its programs."""

    def __init__(self, function: Callable[..., Any], launch: Launch, programs: Collection[int]) -> None:
        self.function, self._launch, self._programs = function, launch, programs
        self.__name__ = function.__name__
        self.__signature__ = inspect.signature(function)
        self.__globals__ = function.__globals__
        self.__annotations__ = function.__annotations__
        self.__code__ = function.__code__

    def __call__(self, **kwargs: Any) -> None:
        """Run the current program if it is one of them."""
        (x, y, z), grid = self._launch.program, self._launch.grid
        if x + grid[0] * (y + grid[1] * z) in self._programs:
            self.function(**kwargs)
        else:
            self._launch.run -= 1
