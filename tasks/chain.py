"""The chain of a flow: select -> design -> write -> compile -> time -> record, each step a Prefect task.

Prefect draws an arrow between two task runs if the later one has a result of the earlier one among its inputs. Here
inputs are whole records, and searching them for results took half of the CPU time of a task run. So the inputs are
quoted, which prevents the search, and the chain names the runs that each step follows.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID, uuid4

from prefect import Task
from prefect.client.schemas.objects import RunInput, TaskRunResult
from prefect.context import FlowRunContext
from prefect.task_engine import run_task_sync
from prefect.utilities.annotations import quote
from typing_extensions import override

from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.ledger import Job
from kernel_scientist.campaign.steps import Experimenter, Skip, Steps
from kernel_scientist.records.approval import Approval
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Case, Kernel
from kernel_scientist.sandbox.device_lock import Turn
from kernel_scientist.scientist.proposals import Design, Draft, Lessons, Selection
from tasks import approval, compilation, hypothesis, implementation, selection, timing, tracking, tuning

Result = TypeVar("Result")
NAMED = 3
"""Kernels in the name of a task that records several."""


class Chain(Steps):
    """The steps of one flow run as Prefect tasks. Several threads may take steps at the same time."""

    def __init__(self) -> None:
        self._last: dict[str, UUID] = {}
        """The latest task run about each subject: a kernel, or a generation."""

    def run(self, step: Task[..., Result], subject: str, after: Sequence[str] = (), **inputs: Any) -> Result:
        """Run a task about a subject, after the latest ones about it and about the subjects in `after`.

        Raises what the task raises; InfrastructureError if it takes too long.
        """
        followed = {self._last[name] for name in (subject, *after) if name in self._last}
        results: set[RunInput] = {TaskRunResult(id=number) for number in followed}  # type: ignore[reportUnhashable]
        dependencies = {next(iter(inputs)): results}
        number = uuid4()
        parameters = {name: quote(value) for name, value in inputs.items()}
        try:
            result = run_task_sync(step, task_run_id=number, parameters=parameters, dependencies=dependencies)
        except TimeoutError as error:
            raise InfrastructureError(f"a step took too long: {error}") from error
        self._last[subject] = number
        return result  # type: ignore[return-value]

    @override
    def select(self, campaign: Experimenter, generation: int) -> Selection:
        return self.run(selection.select, _name(generation), campaign=campaign, generation=generation)

    @override
    def design(self, campaign: Experimenter, generation: int, selection: Selection) -> Design:
        inputs: dict[str, Any] = {"campaign": campaign, "generation": generation, "selection": selection}
        return self.run(hypothesis.design, _name(generation), **inputs)

    @override
    def summarise(self, campaign: Experimenter, generation: int) -> Lessons:
        return self.run(hypothesis.summarise, "findings", campaign=campaign, generation=generation)

    @override
    def write(self, campaign: Experimenter, job: Job) -> Draft:
        self._last.pop(job.name, None)  # of a job that was dropped, whose name is used again
        return self.run(implementation.write, job.name, [_name(job.generation)], campaign=campaign, job=job)

    @override
    def repair(self, campaign: Experimenter, job: Job, failed: Trial) -> Draft | None:
        return self.run(implementation.repair, job.name, campaign=campaign, job=job, failed=failed)

    @override
    def build(
        self,
        bench: Bench,
        kernel: Kernel,
        cases: tuple[Case, ...] | None = None,
        skip: Skip | None = None,
        base: Evaluation | None = None,
    ) -> Evaluation:
        inputs: dict[str, Any] = {"bench": bench, "kernel": kernel, "cases": cases, "skip": skip, "base": base}
        return self.run(compilation.compile_kernel, kernel.name, **inputs)

    @override
    def time(
        self,
        bench: Bench,
        kernel: Kernel,
        measure: Callable[[], Result],
        title: str = "",
        noise: bool = True,
    ) -> Result:
        if noise and bench.target.machine_is_due():
            self.run(timing.measure_machine, kernel.name, bench=bench)
        title = title or bench.target.timing_title(kernel)
        turn = bench.turn(title)
        step = timing.time_once if bench.target.repeats else timing.time_kernel
        timed: dict[str, Any] = {"bench": bench, "kernel": kernel, "measure": measure}
        with turn:
            self.take(turn, bench.params.harness.device_wait_s, f"wait for the device, {kernel.name}", kernel.name)
            return self.run(step, kernel.name, **timed, title=title, turn=turn)

    @override
    def take(self, turn: Turn, still_s: float, title: str, subject: str = "device") -> None:
        if not turn.taken_at_once():
            self.run(timing.wait, subject, turn=turn, still_s=still_s, title=title)

    @override
    def count(self, bench: Bench, kernel: Kernel, timed: Evaluation) -> Evaluation:
        return self.run(timing.count_kernel, kernel.name, bench=bench, kernel=kernel, timed=timed)

    @override
    def tune(self, bench: Bench, kernel: Kernel, search: Callable[[], Kernel | None], name: str) -> Kernel | None:
        return self.run(tuning.tune_kernel, name, bench=bench, kernel=kernel, search=search)

    @override
    def record(self, campaign: Experimenter, trials: Sequence[Trial]) -> None:
        names = [trial.kernel.name for trial in trials]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        shown = ", ".join(names[:NAMED]) + more
        self.run(tracking.record, names[0], names, campaign=campaign, trials=trials, names=shown)
        for name in names:
            self._last.pop(name, None)
        if flow := FlowRunContext.get():
            flow.run_results.clear()  # what Prefect keeps of results to find them among inputs

    @override
    def approve(self, bench: Bench, question: str) -> Approval:
        return approval.ask(bench, question)


def _name(generation: int) -> str:
    return f"generation {generation}"
