"""What follows from the counts of a kernel's timed cases, which the machine made while it executed them: its predicted
time, and where its programs spend it, by source line.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_scientist.evaluation.correctness.timed_cases import ExecutedCall
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.gpu.isa.symbols import plain
from kernel_scientist.gpu.machine import listing
from kernel_scientist.gpu.machine.counts import MOST_LAUNCHES, MOST_OPERATIONS, MOST_STORAGES
from kernel_scientist.gpu.machine.listing import Listing
from kernel_scientist.gpu.model import constants, executed, predict
from kernel_scientist.gpu.model.executed import LaunchCounts
from kernel_scientist.gpu.model.launch import Amount
from kernel_scientist.gpu.model.lines import by_line
from kernel_scientist.gpu.model.predict import CostEstimate, KernelLoad
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Launch, Prediction
from kernel_scientist.records.gpu import TorchOperation
from kernel_scientist.records.kernel import Case, Work
from kernel_scientist.records.source_line import SourceLine
from kernel_scientist.workers.validation import protocol_violation


class CountedOperation(BaseModel):
    """An operation of torch between launches, as a worker reports it; see `TorchOperation`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = Field(max_length=100)
    after: int = Field(ge=0)
    storages: dict[str, Amount] = Field(max_length=MOST_STORAGES)
    fetches: bool


class CallCounts(BaseModel):
    """What a worker counted in one call."""

    model_config = ConfigDict(frozen=True)
    counts: tuple[LaunchCounts, ...] = Field(default=(), max_length=MOST_LAUNCHES)
    operations: tuple[CountedOperation, ...] = Field(default=(), max_length=MOST_OPERATIONS + 1)

    @classmethod
    def of(cls, call: ExecutedCall) -> Self:
        """Return what a worker counted in a call. Raises KernelFailure if that is no report."""
        try:
            return cls.model_validate({"counts": call.counts, "operations": call.operations})
        except ValidationError as error:
            raise protocol_violation("no report on what it counted") from error


@dataclass
class CountedPredictor:
    """Predicts one kernel's timed cases."""

    problem: Problem
    gpu: Gpu
    report: CompileReport
    """Of the kernel: only code objects that it names are looked at."""
    calls: Mapping[str, CallCounts]
    """By case."""
    source: str = ""
    """The kernel's file."""

    @cached_property
    def _codes(self) -> dict[str, tuple[str, Listing]]:
        """The compiled texts and what they list, by the digest of their instructions."""
        found: dict[str, tuple[str, Listing]] = {}
        for text in map(assembly.get, dict.fromkeys(one.digest for one in self.report.objects)):
            with contextlib.suppress(listing.ListingError):  # such code was not counted
                read = listing.read(text or "")
                found[read.digest] = text or "", read
        return found

    def predictions(self, cases: Sequence[Case]) -> tuple[CompileReport, tuple[Prediction, ...]]:
        """Return the report with launches and what is missing, and the prediction of every case; none unless all can be
        predicted. Raises KernelFailure for counts of other code than was compiled."""
        objects, launches, missed, found = list(self.report.objects), list[Launch](), list[str](), list[Prediction]()
        known, seen = constants.of(self.gpu.name), {launch.case for launch in self.report.launches}
        for case in cases:
            call = self.calls.get(case.name, CallCounts())
            loads = [self._load(counts) for counts in call.counts]
            both = zip(call.counts, loads, strict=True) if case.name not in seen else ()
            launches += [self._launch(case, counts, load.code, objects) for counts, load in both]
            operations = [TorchOperation(case=case.name, **one.model_dump()) for one in call.operations]
            work = self.problem.work(case)
            if reason := self._obstacle(loads, operations, work):
                missed.append(f"{case.name}: no prediction: {reason}")
                continue
            ordered = predict.in_order(loads, operations, self.gpu)
            found.append(predict.predict(self.gpu, case.name, work, ordered, known))
        changes = {
            "objects": tuple(objects),
            "launches": (*self.report.launches, *launches),
            "missed": tuple(dict.fromkeys((*self.report.missed, *missed))),
        }
        return self.report.model_copy(update=changes), () if missed else tuple(found)

    def lines(self, case: str) -> tuple[SourceLine, ...]:
        """Return where a program of a case's longest launch spends its time; none if no launch of the compiled code
        was counted."""
        found: list[tuple[LaunchCounts, KernelLoad, CostEstimate]] = []
        for counts in self.calls.get(case, CallCounts()).counts:
            if counts.code in self._codes:
                load = self._load(counts)
                found.append((counts, load, predict.estimate(self.gpu, load, constants.of(self.gpu.name))))
        if not found:
            return ()
        counts, load, longest = max(found, key=lambda one: one[2].time_us)
        _, listed = self._compiled(counts)
        return by_line(load.code.kernel, counts, listed, longest, self.gpu, self.source)

    @staticmethod
    def _obstacle(loads: Sequence[KernelLoad], operations: Sequence[TorchOperation], work: Work) -> str:
        if loads and len(operations) > MOST_OPERATIONS:
            return f"torch does more than {MOST_OPERATIONS} operations in it"
        return predict.obstacle(loads, operations, work)

    def _load(self, counts: LaunchCounts) -> KernelLoad:
        _, found = self._compiled(counts)
        try:
            counts.require_of(found.statements)
        except ValueError as error:
            raise protocol_violation(str(error)) from error
        code = self._code(counts, found)
        issue = executed.issue(counts, found.statements)
        return KernelLoad(code, executed.traffic(counts, found.statements, self.gpu), issue)

    def _compiled(self, counts: LaunchCounts) -> tuple[str, Listing]:
        if counts.code not in self._codes:
            raise protocol_violation("counts of code that was not compiled")
        return self._codes[counts.code]

    def _code(self, counts: LaunchCounts, found: Listing) -> CodeObject:
        """Return the code object with the launch's workgroup and LDS."""
        text, names = self._compiled(counts)[0], plain(list(found.kernels))
        if counts.kernel not in names:
            raise protocol_violation("counts of a kernel that was not compiled")
        every = _objects(text, counts.num_warps, counts.dynamic_lds)
        return next(one for one in every if one.kernel == names[counts.kernel])

    def _launch(self, case: Case, counts: LaunchCounts, code: CodeObject, objects: list[CodeObject]) -> Launch:
        """Return the record of a launch; its code object takes the place of the one without a workgroup's size."""
        if code not in objects:
            place = next((n for n, one in enumerate(objects) if (one.kernel, one.digest) == (code.kernel, code.digest)))
            launched = any(one.num_warps == code.num_warps for one in objects[place : place + 1])
            if launched or place >= len(self.report.objects):
                objects.append(code)
            else:
                objects[place] = code
        return Launch(
            case=case.name, kernel=code.kernel, grid=counts.grid, num_warps=code.num_warps, code=objects.index(code)
        )


@lru_cache(maxsize=64)
def _objects(text: str, num_warps: int, shared_bytes: int) -> tuple[CodeObject, ...]:
    """Return the code objects of a text: most cases of a kernel launch the same code in the same way."""
    return tuple(assembly.read(text, num_warps, shared_bytes))
