"""Driver of workers: loads a kernel, delivers inputs, makes rows of calls, verifies their outputs.

It is the layer between the evaluator and the workers. Its only judgement is whether an output is correct.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel_scientist.compilers import build
from kernel_scientist.compilers.gxx import Built
from kernel_scientist.compilers.request import ExtensionRequest, Request
from kernel_scientist.evaluation.comparison import Comparison
from kernel_scientist.evaluation.inputs import InputGenerator, InputSet
from kernel_scientist.gpu.machine.host import build as host
from kernel_scientist.problems.device_names import on_device
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import CompileReport
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import device_queue
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.client import Build, InputAccessError, Output, Row, WorkerClient
from kernel_scientist.workers.native import SLOTS
from kernel_scientist.workers.worker_pool import WorkerPool

SPARE_SLOT = 1000 * SLOTS + 1
"""Number of a slot that timings do not use, without memory of its own: cases of all sizes follow one another there."""


class Driver:
    """Runs kernels of one problem in the workers of one pool."""

    def __init__(self, problem: Problem, harness: Harness, pool: WorkerPool) -> None:
        self.problem, self.harness, self.pool = problem, harness, pool
        self.inputs, self.comparison = InputGenerator(problem), Comparison(problem)

    def load(self, worker: WorkerClient, source: str, cases: Sequence[Case]) -> None:
        """Import a file in its worker. May raise KernelFailure.

        If the worker may start programs, one call per case lets the file compile and autotune; later calls cannot.
        """
        if worker.programs:
            self.pool.fill(worker, source)
        self.imported(worker, source, [])
        if worker.programs:
            for case in cases:
                self.row(worker, {SPARE_SLOT: self.inputs.draw(case)}, self.harness.build_timeout_s)
            self.pool.keep(worker, source)
            worker.seal()
        self.pool.require_room(worker)

    def imported(self, worker: WorkerClient, source: str, reports: list[CompileReport]) -> None:
        """Import a file in its worker; append a report of each build. May raise KernelFailure.

        A file with `ModelNew` only gets the problem's adapter. Without a GPU it runs on the CPU.
        """
        source = self.problem.adapted(source)
        if self.pool.device == "cpu" and self.pool.machine is None:
            source = on_device(source, "cpu")
        device = "cuda" if self.pool.machine is not None else self.problem.device
        worker.load(source, self.builder(reports), self.problem.read_sources(device))

    def row(
        self,
        worker: WorkerClient,
        inputs: Mapping[int, InputSet],
        limit_s: float | None = None,
        warm: int | None = None,
        queued: bool = False,
    ) -> tuple[Row, list[Output]]:
        """Make one timed row of calls on inputs by slot, after an untimed call on `warm`. May raise KernelFailure.

        `queued`: on a GPU, queue the calls behind a delay, so that their launch is not timed.
        """
        device_queue.progressed()
        self.deliver(worker, inputs)
        room = sum(self.comparison.room(one) for one in inputs.values())
        write, inspect = (functools.partial(work, worker, inputs) for work in (self.write, self.inspect))
        try:
            return worker.run_row(list(inputs), write, inspect, room, limit_s, warm, queued)
        except InputAccessError as failure:
            case = next(iter(inputs.values())).case.name
            raise KernelFailure(failure.verdict, f"{case}: {failure.reason}", failure.evidence) from failure

    def deliver(self, worker: WorkerClient, inputs: Mapping[int, InputSet]) -> None:
        """Announce the places of a worker's next inputs, by slot."""
        worker.prepare({slot: self.inputs.placed(one, worker.inputs, slot) for slot, one in inputs.items()})

    def write(self, worker: WorkerClient, inputs: Mapping[int, InputSet]) -> None:
        """Write the inputs' values. Afterwards they are in no cache."""
        for slot, one in inputs.items():
            self.inputs.write(one, worker.inputs, slot)
        worker.inputs.written()

    def inspect(self, worker: WorkerClient, inputs: Mapping[int, InputSet]) -> None:
        """Raise KernelFailure if something was written that a kernel may not write."""
        for slot, one in inputs.items():
            if damage := worker.inputs.damage(slot):
                raise KernelFailure(Verdict.INCORRECT, f"{one.case.name}: {damage}")

    def verify(self, inputs: Sequence[InputSet], outputs: Sequence[Output]) -> None:
        """Compare the outputs of calls with the reference's. Raises KernelFailure if one is wrong."""
        for one, output in zip(inputs, outputs, strict=True):
            device_queue.progressed()
            self.comparison.require(one, output.tree, output.buffers)

    def builder(self, reports: list[CompileReport]) -> Build:
        """Return a function that compiles a worker's requests and appends each report to `reports`."""

        def compiled(request: Request) -> tuple[Path | None, str]:
            built = self._built(request)
            reports.append(built.report)
            return built.path, built.report.log

        return compiled

    def _built(self, request: Request) -> Built:
        machine, limit_s = self.pool.machine, self.harness.build_timeout_s
        if isinstance(request, ExtensionRequest) and machine is not None:
            return host.whole(request, machine["facts"]["arch"], limit_s)
        return build.build(request, self.pool.device, limit_s)
