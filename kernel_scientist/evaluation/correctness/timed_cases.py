"""Checks timed cases by value, of a kernel for a GPU that is not here.

Kernels choose their path by the shape of the inputs. A small case therefore proves nothing for a timed one. The machine
(`gpu.machine`) executes each timed case whole as long as its share of the time lasts, and otherwise runs of workgroups
drawn at random. What they computed is compared here with the reference.
"""

import contextlib
import functools
import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from pydantic import BaseModel, Field, ValidationError

from kernel_scientist.evaluation.correctness import known_elements
from kernel_scientist.evaluation.correctness.known_elements import Box, Mask
from kernel_scientist.evaluation.correctness.memory_report import MemoryReports
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.inputs import InputSet
from kernel_scientist.evaluation.timed_inputs import TimedInputs
from kernel_scientist.problems.trees import changed
from kernel_scientist.records.evaluation import Launch
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure, printable
from kernel_scientist.workers.client import ExecutionMode, Output, WorkerClient
from kernel_scientist.workers.untrusted.outputs import tensors
from kernel_scientist.workers.validation import leaves, protocol_violation

MOST_OUTPUT_BYTES = 1 << 30
LEAST_S = 0.2
"""Seconds that every case gets, also when the time is over."""
LEAST_SHARE = 0.8
"""What workgroups write of an even share of the output; if it is less, all of them are executed."""
AT_ONCE = 1e-6
"""Seconds after which no further workgroups run than those that are counted, and a few."""
ALL_OF_IT = 0.0
"""No limit to the seconds of a case but that of a call."""
Tuned = tuple[tuple[str, Mapping[str, str]], ...]


class Extent(BaseModel):
    """What of a call's launches a worker executed."""

    launches: list[tuple[str, int, int]]
    """Kernel, executed programs, all programs."""
    parts_of_several: bool = False
    """Whether launches were executed in part, and several of them, or torch as well, made the outputs."""
    seconds: float = Field(ge=0, allow_inf_nan=False)
    """CPU time of the call."""


class ExecutedCall(BaseModel):
    """A worker's report on a call of which it executed all or a part."""

    known: list[list[tuple[int, int]]]
    """(first, count) of the computed elements of each output tensor, in its flattened order."""
    extent: Extent
    counts: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """What each launch did, if it was asked for (`evaluate.counted`)."""
    operations: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Operations of torch among the launches."""


class TimedCases:
    """Checks the values of one kernel's timed cases."""

    def __init__(
        self,
        driver: Driver,
        inputs: TimedInputs,
        cases: Sequence[Case],
        launches: Sequence[Launch] = (),
        counted: Collection[str] = (),
    ) -> None:
        """`launches`: of all cases, as far as they are known. `counted`: names of cases whose launches the machine also
        counts."""
        self.driver, self.problem, self.harness, self._inputs = driver, driver.problem, driver.harness, inputs
        self._launches, self._left_s, self._counted = launches, driver.harness.executed_s, counted
        self._ordered = tuple(_in_order(cases, launches))
        self._watched = set[str]()
        self._returned: Any = None
        """What the reference returned last: the structure of the output."""
        self._lacking = set[str]()
        """Cases of which a part of the launch wrote less than its share of the output."""
        self.calls: dict[str, ExecutedCall] = {}
        """The last report on each case."""
        self._beside = ThreadPoolExecutor(1)
        """Compares while a worker executes."""
        self._comparing: Future[None] | None = None

    @property
    def cases(self) -> Sequence[Case]:
        """The cases in the order in which they are checked."""
        return [case for case, _ in self._ordered]

    def run(self, worker: WorkerClient, watched: Collection[str] = ()) -> str:
        """Check every case; return a sentence on what was covered. Raises KernelFailure.

        Cases with launches that no earlier case had come first; the others are left out when the time is over.
        watched: names of kernels that checking runs have executed; others, which run on timed cases only, are watched
        here.
        """
        checked, reports, cases = 0, MemoryReports(), self.cases
        self._watched.update(watched)
        with self._beside:
            for place, (case, is_required) in enumerate(self._ordered):
                if is_required or case.name in self._counted or self._left_s > 0:
                    share_s = max(self._left_s / (len(cases) - place), LEAST_S)
                    checked += self._checked(worker, case, reports, share_s, is_required)
            self._end_comparing()
        with contextlib.suppress(KernelFailure):  # a part of several launches may fail where all of them do not
            for case in cases:
                if case.name in self._counted and case.name not in self.calls:
                    self.count(worker, case)
        return f"values compared on {checked} of {len(cases)} timed cases, {reports.words('there')}"

    def count(self, worker: WorkerClient, case: Case) -> None:
        """Execute samples of a case's launches and count what they do; nothing is compared. Raises KernelFailure."""
        reports, launches = MemoryReports(), [one for one in self._launches if one.case == case.name]
        self._call(worker, case, reports, ExecutionMode(AT_ONCE, _tuned(launches), True))
        self.calls[case.name] = _parsed(reports.last)

    def _checked(
        self, worker: WorkerClient, case: Case, reports: MemoryReports, share_s: float, is_required: bool
    ) -> bool:
        """Check a case. Returns whether anything could be compared.

        A part of the workgroups says something if each writes its own results. Of several launches the later ones may
        read what is missing then, so all of them are executed whole: if there is time, if no other case has such
        launches, or if a part of them wrote less than its share.
        """
        launches = [one for one in self._launches if one.case == case.name]
        done = len(launches) <= 1 and self._check(worker, case, launches, reports, share_s)
        must = case.name in self._lacking or (is_required and bool(launches))
        done = done or ((self._left_s > 0 or must) and self._check(worker, case, launches, reports, ALL_OF_IT))
        if done and self._left_s > 0:
            self._watch(worker, case, _tuned(launches), reports)
        return done

    def _watch(self, worker: WorkerClient, case: Case, tuned: Tuned, reports: MemoryReports) -> None:
        """Make a checking run if the case launches kernels that none has executed, and could be executed whole."""
        launched, before_s = self.calls[case.name].extent.launches, reports.seconds
        new = {name for name, _, _ in launched} - self._watched
        if new and all(executed == every for _, executed, every in launched):
            self._call(worker, case, reports, ExecutionMode(tuned=tuned, checked=True))
            self._watched |= new
            self._left_s -= reports.seconds - before_s

    def _check(
        self, worker: WorkerClient, case: Case, launches: Sequence[Launch], reports: MemoryReports, seconds: float
    ) -> bool:
        """Check a case; a worker executes no more of it after so many seconds. Returns whether it could be compared."""
        part = ExecutionMode(seconds, _tuned(launches), case.name in self._counted)
        try:
            output = self._call(worker, case, reports, part)
        except KernelFailure:
            if seconds and reports.is_of_a_part:  # a later launch may have read what was missing
                return False
            raise
        call = self.calls[case.name] = _parsed(reports.last)
        self._left_s -= call.extent.seconds
        if call.extent.parts_of_several:
            return False
        if _lacks(call, output):
            self._lacking.add(case.name)
            return False
        _require_executed(case, call.extent, launches)
        self._end_comparing()  # so that no more than two outputs are held
        self._comparing = self._beside.submit(self._require_right, self._inputs.get(case), output, call)
        return True

    def _end_comparing(self) -> None:
        """Wait until the case before is compared. Raises KernelFailure if it was wrong."""
        if self._comparing is not None:
            self._comparing.result()

    def _call(self, worker: WorkerClient, case: Case, reports: MemoryReports, part: ExecutionMode) -> Output:
        """Call the kernel on a case's inputs; return its output, which is whole or not."""
        inputs = self._inputs.get(case)
        reports.last = protocol.Header()  # a call that ends without a report is not explained by that of another
        worker.execute(part)
        self.driver.deliver(worker, {0: inputs})
        write, inspect = (
            functools.partial(work, worker, {0: inputs}) for work in (self.driver.write, self.driver.inspect)
        )
        with reports.of_call(worker, case.name):
            try:
                _, outputs = worker.run_row([0], write, inspect, MOST_OUTPUT_BYTES, self.harness.executed_timeout_s)
            except KernelFailure as failure:
                raise KernelFailure(failure.verdict, f"{case.name}: {failure.reason}", failure.evidence) from failure
        return outputs[0]

    def _require_right(self, inputs: InputSet, output: Output, call: ExecutedCall) -> None:
        name = inputs.case.name
        try:
            found = tensors(protocol.decode(output.tree, list(output.buffers), None))
        except protocol.WireError as error:
            raise KernelFailure(Verdict.REJECTED, f"{name}: its output is not data: {error}") from error
        if len(found) != len(call.known):
            raise protocol_violation("a report on other outputs")
        compared = 0
        for position, (tensor, runs) in enumerate(zip(found, call.known, strict=True)):
            known = known_elements.mask(tensor, runs)
            if len(found) == 1 and not self.problem.has_extent(inputs.data, tensor.shape):
                reason = f"{name}: its output has shape {tuple(tensor.shape)}, another than the inputs ask for"
                raise KernelFailure(Verdict.INCORRECT, reason)
            compared += int(known.sum())
            boxes = known_elements.boxes(known) if len(found) == 1 else [(slice(None),) * tensor.dim()]
            for number, box in enumerate(boxes):
                self._compare(inputs, found, position, known, box, is_first=number == 0)
        if not compared:
            raise KernelFailure(Verdict.INCORRECT, f"{name}: its programs write no element of the output")

    def _compare(
        self,
        inputs: InputSet,
        found: Sequence[torch.Tensor],
        position: int,
        known: Mask,
        box: Box,
        is_first: bool,
    ) -> None:
        """Raise KernelFailure unless the known elements of a box of the output at `position` are right.

        The first box of an output shows its type and shape. Other elements are filled in from the reference, as soon as
        the problem's own check computes it. Here it is computed only for the structure of the output.
        """
        tensor = found[position]
        data, widened = self.problem.part(inputs.data, box, tensor.shape)
        part, seen = tensor[widened], torch.from_numpy(known)[widened]
        form = functools.partial(self._require_form, inputs, found, position, part) if is_first else _anything
        if self._returned is None or len(found) > 1:
            self._returned = expected = self.problem.reference(data)
            form(expected)
            outputs = tensors(expected)
            outputs[position] = torch.where(seen, part, outputs[position])
            rest = iter(outputs)
            good, message = self.problem.check(data, changed(expected, lambda _: next(rest)))
        else:
            own = part.clone()

            def fill(expected: Any) -> None:
                form(expected)
                own.copy_(torch.where(seen, own, tensors(expected)[0].to(own.dtype)))

            output = changed(self._returned, lambda _: own)
            good, message = self._checked_filled(data, output, fill if is_first or not bool(seen.all()) else None)
        if not good:
            place = ", ".join(f"{s.start}:{s.stop}" for s in box if s.start is not None)
            reason = f"{inputs.case.name}, elements [{place}] of the output: {message}"
            raise KernelFailure(Verdict.INCORRECT, reason)

    def _checked_filled(self, data: Any, output: Any, fill: Callable[[Any], None] | None) -> tuple[bool, str]:
        """Return what the problem's check says of an output that `fill` completes, if need be."""
        if fill is None:
            return self.problem.check(data, output)
        try:
            if (answer := self.problem.check(data, output, fill))[0]:
                return answer
        except KernelFailure:
            raise
        except Exception:
            pass
        return self.problem.check(data, output)

    def _require_form(
        self, inputs: InputSet, found: Sequence[torch.Tensor], position: int, part: torch.Tensor, expected: Any
    ) -> None:
        """Raise KernelFailure unless a part of an output has the type and the shape of the reference's."""
        outputs = tensors(expected)
        if len(found) != len(outputs):
            reason = f"{inputs.case.name}: it returned {len(found)} tensors, the reference {len(outputs)}"
            raise KernelFailure(Verdict.INCORRECT, reason)
        buffers = [one.dtype for place in self.problem.writes for one in tensors(inputs.data[place])]
        if part.dtype not in (outputs[position].dtype, *buffers):
            reason = f"{inputs.case.name}: it returned {part.dtype}, the reference {outputs[position].dtype}"
            raise KernelFailure(Verdict.INCORRECT, reason)
        if outputs[position].shape != part.shape:
            shapes = f"{tuple(part.shape)} where the reference's has {tuple(outputs[position].shape)}"
            raise KernelFailure(Verdict.INCORRECT, f"{inputs.case.name}: a part of its output has shape {shapes}")


def _anything(_: Any) -> None:
    """Accept any output of the reference."""


def _require_executed(case: Case, extent: Extent, launches: Sequence[Launch]) -> None:
    """Raise KernelFailure that names what was launched and not executed."""
    missing = [f"{name} ({total} programs)" for name, executed, total in extent.launches if total and not executed]
    names = [name for name, _, _ in extent.launches]
    missing += [one.kernel for one in launches if one.kernel not in names]
    if missing:
        reason = f"{case.name}: launched and never executed: {', '.join(dict.fromkeys(missing))}"
        raise KernelFailure(Verdict.REJECTED, printable(reason))


def _lacks(call: ExecutedCall, output: Output) -> bool:
    """Whether some workgroups of one launch wrote less of an output than workgroups that share it evenly."""
    (_, executed, every), *others = call.extent.launches or [("", 0, 0)]
    if others or executed == every:
        return False
    sizes = (protocol.DenseLayout.read(leaf) for leaf in leaves(output.tree))
    both = zip(call.known, (math.prod(one.shape) for one in sizes), strict=False)
    return any(sum(count for _, count in runs) < LEAST_SHARE * size * executed / every for runs, size in both)


def _in_order(cases: Sequence[Case], launches: Sequence[Launch]) -> Iterator[tuple[Case, bool]]:
    """Yield the cases at random, those with a launch that no other has first, and whether they are of these."""
    seen: set[tuple[Any, ...]] = set()
    later: list[Case] = []
    for case in random.SystemRandom().sample(cases, len(cases)):
        mine = {_configuration(one) for one in launches if one.case == case.name}
        if mine <= seen and mine:
            later.append(case)
        else:
            seen |= mine
            yield case, True
    yield from ((case, False) for case in later)


def _tuned(launches: Sequence[Launch]) -> Tuned:
    return tuple((one.kernel, one.constants) for one in launches if one.autotuned)


def _configuration(launch: Launch) -> tuple[Any, ...]:
    return launch.kernel, launch.code, tuple(sorted(launch.constants.items()))


def _parsed(report: protocol.Header) -> ExecutedCall:
    try:
        calls: Any = report["calls"]
        return ExecutedCall.model_validate(calls[-1])
    except (ValidationError, LookupError, TypeError) as error:
        raise protocol_violation("no report on what it executed") from error
