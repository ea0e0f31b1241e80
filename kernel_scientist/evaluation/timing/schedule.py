"""Timing sources against each other in interleaved blocks, each in its own live worker.

Within a block every source is timed `2 * turns` times per case: in a random order, then in its reverse. The quickest
row counts, because interruptions only add time. A sample is a row of calls on distinct new inputs, the same for all
sources, long enough that the cost of its start and end signals does not matter. After each stage, of which there are
`harness.stages` at most, the workers are replaced by fresh ones, and the plan's test decides whether to go on.
"""

import random
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.inputs import InputSet
from kernel_scientist.evaluation.timing import statistics
from kernel_scientist.evaluation.timing.estimate import Samples
from kernel_scientist.evaluation.timing.plan import LEAST_STAGES, TimedSource, TimingPlan
from kernel_scientist.records.errors import BesideError, InfrastructureError
from kernel_scientist.records.kernel import Case, Verdict, digest
from kernel_scientist.sandbox import device_queue
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.client import Output, WorkerClient
from kernel_scientist.workers.native import SLOTS

MOST_CALLS, MOST_ROW_BYTES = SLOTS - 1, 64 << 20
"""Most calls of a row, and most bytes of their inputs together."""
ROOM = 1.1
"""Factor by which rows are planned longer than `harness.row_us`, because warm-up calls are slower than later ones."""
Scheduling = Mapping[str, Mapping[int, object]]
"""Cores and scheduling by source (`PARENT`: the workers' parent) and thread."""
PARENT = ""


def run(driver: Driver, plan: TimingPlan, sources: Sequence[TimedSource]) -> Samples:
    """Time all sources by the plan.

    Raises KernelFailure when the candidate fails, BesideError when another source does.
    """
    assert len({source.name for source in sources}) == len(sources), "two sources have one name"
    timing = _TimingRun(driver, plan, Samples(sources={source.name: digest(source.source) for source in sources}))
    for stage in range(plan.stages):
        with driver.pool.workers([source.compiles for source in sources], timing=True) as workers:
            timing.workers = {source.name: worker for source, worker in zip(sources, workers, strict=True)}
            if timing.stage(stage, sources):
                break
        if needs_no_further_stage(plan, timing.samples, stage + 1):
            break
    return timing.samples


@dataclass
class _TimingRun:
    """State of a timing in progress."""

    driver: Driver
    plan: TimingPlan
    samples: Samples = field(default_factory=Samples)
    workers: dict[str, WorkerClient] = field(default_factory=dict[str, WorkerClient])
    calls: dict[str, int] = field(default_factory=dict[str, int])
    """Calls per row, by case."""
    rng: random.Random = field(default_factory=random.Random)

    def stage(self, number: int, sources: Sequence[TimedSource]) -> bool:
        """Time one stage; return whether the rest of the timing is pointless."""
        before = self._scheduling()
        for source in sources:
            with self._blame(source.name):
                self.driver.load(self.workers[source.name], source.source, self.plan.cases)
                before = self._require_untouched(before, source.name, "imported")
            device_queue.progressed()
        before = {**self._warm_up(), PARENT: before[PARENT]}
        for block in range(self.plan.blocks):
            for _ in range(self.plan.turns):
                order = self.rng.sample(list(self.workers), len(self.workers))
                for case in self.rng.sample(self.plan.cases, len(self.plan.cases)):
                    rows = self.driver.inputs.rows(case, self.calls[case.name], 2)
                    for names, inputs in zip((order, order[::-1]), rows, strict=True):
                        self._rows(names, case, inputs, number, block)
            with self._blame(self.plan.candidate):
                self._require_untouched(before, self.plan.candidate, "timed")
            if number == 0 and hopeless(self.plan, self.samples, block + 1):
                self.samples.dropped_after = block + 1
                return True
        return False

    def _rows(self, names: Sequence[str], case: Case, inputs: Sequence[InputSet], stage: int, block: int) -> None:
        """Time one row of every source, then verify all outputs."""
        returned: dict[str, list[Output]] = {}
        slots = self._slots(case, inputs)
        for name in names:
            with self._blame(name), self._others_paused(name):
                warm = self._first_slot(case)
                row, returned[name] = self.driver.row(self.workers[name], slots, warm=warm, queued=True)
            self.samples.add(name, case.name, stage, block, row)
            device_queue.progressed()
        for name in names:
            with self._blame(name):
                self.driver.verify(inputs, returned[name])

    def _warm_up(self) -> Scheduling:
        """Make untimed calls, set the rows' lengths, and return the scheduling of each source's threads."""
        harness, start, rounds = self.driver.harness, time.monotonic(), 0
        least_s = harness.gpu_warmup_s if self.driver.pool.on_gpu else 0.0  # a GPU's clocks and power must settle
        before: dict[str, dict[int, object]] = {}
        quickest: dict[str, float] = {}
        while rounds < max(1, harness.warmup_calls) or time.monotonic() - start < least_s:
            rounds += 1
            for case in self.plan.cases:
                inputs = [self.driver.inputs.draw(case)]
                for name, worker in self.workers.items():
                    with self._blame(name):
                        with self._others_paused(name):
                            row, outputs = self.driver.row(worker, {self._first_slot(case): inputs[0]})
                        before.setdefault(name, worker.process.scheduling())
                        self.driver.verify(inputs, outputs)
                    self.samples.add_unqueued(name, case.name, row)
                    device_queue.progressed()
                    quickest[case.name] = min(row.wall_ns / 1000, quickest.get(case.name, float("inf")))
        for case in self.plan.cases:
            self.calls.setdefault(case.name, self._calls(case, quickest[case.name]))
        return before

    def _calls(self, case: Case, quickest_us: float) -> int:
        """Return the number of calls in a row of `harness.row_us`; 1 on a GPU, which is timed by events."""
        if self.driver.pool.on_gpu:
            return 1
        wanted = -(-ROOM * self.driver.harness.row_us // quickest_us)
        size = self.driver.inputs.draw(case).bytes
        return max(1, int(min(wanted, MOST_CALLS, MOST_ROW_BYTES // max(1, size))))

    def _first_slot(self, case: Case) -> int:
        """Return the first slot of a case. It holds the warm-up's inputs for the rest of the stage."""
        return SLOTS * [c.name for c in self.plan.cases].index(case.name)

    def _slots(self, case: Case, inputs: Sequence[InputSet]) -> dict[int, InputSet]:
        """Return the inputs by slot, slots in random order, so that values arrive at both new and earlier addresses."""
        first = self._first_slot(case) + 1
        return dict(zip(self.rng.sample(range(first, first + len(inputs)), len(inputs)), inputs, strict=True))

    @contextmanager
    def _others_paused(self, name: str) -> Generator[None]:
        """Pause the other workers: threads that they left running would take time from this one.

        On a GPU they could launch work as well, which the host's clocks would not show.
        """
        with ExitStack() as stack:
            for other, worker in self.workers.items():
                if other != name:
                    stopped = stack.enter_context(worker.paused())
                    if worker.can_stop and stopped.error:
                        reason = f"its threads could not be stopped while {name} ran (error {stopped.error})"
                        with self._blame(other):
                            raise KernelFailure(Verdict.CRASHED, f"between its calls: {reason}")
            yield

    def _scheduling(self) -> Scheduling:
        """Return the scheduling of all workers' threads and of their parent's."""
        processes = {name: worker.process for name, worker in self.workers.items()}
        processes[PARENT] = next(iter(processes.values())).parent()
        return {name: process.scheduling() for name, process in processes.items()}

    def _require_untouched(self, before: Scheduling, name: str, doing: str) -> Scheduling:
        """Return the scheduling now. Raises KernelFailure if it changed, except for what is the source's own.

        The filter of system calls lets no kernel reach another process. Where it is in force somebody else changed it:
        raises InfrastructureError.
        """
        now = self._scheduling()
        for other, threads in now.items():
            known = before.get(other, {})
            if other != name and any(known.get(thread, how) != how for thread, how in threads.items()):
                whose = "the workers' parent" if other == PARENT else "another worker"
                reason = f"while it was {doing}, the cores or the priority of {whose} were changed"
                if "seccomp" in self.driver.pool.layers:
                    raise InfrastructureError(f"{reason} from outside the sandbox")
                raise KernelFailure(Verdict.REJECTED, reason)
        return now

    @contextmanager
    def _blame(self, name: str) -> Generator[None]:
        """Turn the failure of a source that is not the candidate into a BesideError."""
        try:
            yield
        except KernelFailure as failure:
            if name == self.plan.candidate:
                raise
            raise BesideError(name, failure.reason) from failure


def hopeless(plan: TimingPlan, samples: Samples, blocks: int) -> bool:
    """Whether the candidate is so much slower than the baseline that the rest of the first stage is skipped.

    The whole interval says so, not its middle: beside other work an honest kernel may look three times as slow in two
    blocks.
    """
    if plan.baseline is None or not plan.drop_after or blocks < plan.drop_after:
        return False
    _, high = samples.by_row(plan.candidate, plan.baseline).interval(plan.confidence, plan.margin(1))
    return high < plan.drop_below


def needs_no_further_stage(plan: TimingPlan, samples: Samples, stage: int) -> bool:
    """Whether no further stage is needed: the candidate is slower, is faster in two sets of workers, or is unlikely to
    be found faster while others want the device.
    """
    if plan.baseline is None:
        return False
    estimate = statistics.ratio(*(samples.table(name) for name in (plan.candidate, plan.baseline)))
    low, high = estimate.interval(plan.confidence, plan.margin(stage))
    if high < 1 or (low > 1 and stage >= LEAST_STAGES):
        return True
    hope = statistics.attainable(estimate, plan.confidence, plan.margin(plan.stages), (stage, plan.stages))
    return stage < plan.stages and not hope and not plan.is_idle()
