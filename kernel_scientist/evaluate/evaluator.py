"""The trusted judge: compiles a kernel, checks it, times it. Owns seeds, expected outputs, tolerances and verdicts.

Each step takes an `Evaluation` and returns the next one; a kernel that failed passes through unchanged. What a kernel
does wrong is a verdict; an exception from here means that the laboratory is broken (InfrastructureError: for now).
"""

import contextlib
import functools
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernel_scientist.compile import build as builder
from kernel_scientist.compile import gxx
from kernel_scientist.compile.extension import Request
from kernel_scientist.evaluate.correctness import library_use, output_integrity, policy
from kernel_scientist.evaluate.correctness.comparison import Comparison
from kernel_scientist.evaluate.correctness.inputs import Delivery, Inputs
from kernel_scientist.evaluate.correctness.memory_report import Watch
from kernel_scientist.evaluate.timing import aa_noise, clock_check, conditions, schedule
from kernel_scientist.evaluate.timing.conditions import Sweeper
from kernel_scientist.evaluate.timing.estimate import Reckoner
from kernel_scientist.evaluate.timing.samples import Samples
from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.peaks import Machine, this_cpu
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.base import Record
from kernel_scientist.records.evaluation import CompileReport, Evaluation
from kernel_scientist.records.kernel import REFERENCE, Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import Disagreement, KernelFailure, failed
from kernel_scientist.workers.call import Call
from kernel_scientist.workers.client import Build, Session
from kernel_scientist.workers.native import NativeHarness
from kernel_scientist.workers.pool import WorkerPool

SPARE = 1 << 16
"""A slot beside those of a timing."""
SECRET_CASES = 3
"""How many shapes off the list a kernel is checked on, where the problem names ranges."""


class TimedSource(Record):
    """A source to be timed under a name."""

    name: str
    source: str

    @staticmethod
    def of(kernel: Kernel) -> "TimedSource":
        """Return a kernel as a contestant."""
        return TimedSource(name=kernel.name, source=kernel.source)

    def named(self, name: str) -> "TimedSource":
        """Return the same source under another name."""
        return TimedSource(name=name, source=self.source)


class Evaluator:
    """Judges kernels for one problem on one device."""

    def __init__(self, problem: Problem, profile: str, harness: Harness, pool: WorkerPool) -> None:
        self.problem, self.harness, self.pool = problem, harness, pool
        self.profile_name, self.profile = profile, problem.profile(profile)
        self.inputs, self.comparison = Inputs(problem), Comparison(problem)
        self.machine: Machine | None = this_cpu() if pool.device == "cpu" else gpus.here(pool.device)
        """Peaks of the device; None for a GPU that is in no table."""
        self.reckoner = Reckoner(problem, self.machine, harness.confidence)

    @property
    def native(self) -> NativeHarness:
        """The native part."""
        return self.pool.native

    @functools.cached_property
    def _sweeper(self) -> Sweeper:
        return Sweeper(self.native, self.pool.cores)

    @functools.cached_property
    def margins(self) -> tuple[float, ...]:
        """What a ratio must clear at each look: `harness.margin`, or this machine's A/A noise where that is more."""
        return aa_noise.margins(self)

    @property
    def warmup_s(self) -> float:
        """How long contestants are warmed up at the least: a GPU's clocks and power must settle."""
        return self.harness.gpu_warmup_s if self.pool.on_gpu else 0.0

    def reharnessed(self, harness: Harness) -> "Evaluator":
        """Return the same judge with other settings."""
        return Evaluator(self.problem, self.profile_name, harness, self.pool)

    def reference(self) -> TimedSource:
        """Return the problem's reference as a contestant."""
        return TimedSource(name=REFERENCE, source=self.problem.reference_source)

    def compile(self, kernel: Kernel) -> Evaluation:
        """Screen the kernel's file, import it in a worker and build what it asks for."""
        reports: list[CompileReport] = []
        start, failure = time.monotonic(), None
        with ThreadPoolExecutor(1) as beside:
            screening = beside.submit(self.pool.screen.labels, kernel.source, kernel.language)
            try:
                with self.pool.session() as session:
                    session.load(kernel.source, self._builder(reports))
                    self.pool.require_room(session)
                refused = next((r for r in reports if not r.ok), None)
                if refused is not None:
                    raise KernelFailure(Verdict.COMPILE_ERROR, f"the compiler refused it: {gxx.headline(refused.log)}")
            except KernelFailure as caught:
                failure = caught
            seen = screening.result()
        evaluation = Evaluation(
            verdict=Verdict.OK,
            sandbox=self.pool.layers,
            labels=tuple(dict.fromkeys(f"{label.severity}:{label.name}" for label in seen)),
            evidence=tuple(f"line {label.line or '?'}: {label.name}: {label.detail}" for label in seen),
            compile=gxx.merged(reports, kernel.language),
        )
        if failure is not None:
            return failed(failure, evaluation)
        found = {"environment": conditions.describe(self.pool)}
        return _timed(evaluation.model_copy(update=found), "compile", start)

    def check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None = None) -> Evaluation:
        """Run every checking case on published, secret, almost equal and stressed inputs; have calls watched."""
        if so_far.verdict is not Verdict.OK:
            return so_far
        start = time.monotonic()
        chosen = self.profile.tests if cases is None else tuple(cases)
        try:
            with self.pool.session() as session:
                watch = Watch()
                secret = [case for case in (self.inputs.secret(self.profile) for _ in range(SECRET_CASES)) if case]
                watched = library_use.cases(self, chosen, timed=self.is_timed(kernel))
                self.open(session, kernel.source, (*chosen, *secret, *watched))
                for case in (*chosen, *secret):
                    self._check_case(session, case, watch)
                seen = library_use.observe(self, session, watched)
            labels = (*so_far.labels, *(f"measured:{label}" for label in seen.labels()))
            coverage = watch.words() if self.pool.stage is not None else ""
            warned = tuple(f"memory, warning: {words}" for words in sorted(watch.warnings))
            labels = (*labels, *(("measured:undefined-lanes",) if warned else ()))
            told = {"coverage": coverage, "evidence": (*so_far.evidence, *warned)}
            so_far = so_far.model_copy(update={"labels": tuple(dict.fromkeys(labels)), **told})
            policy.require(self.problem.policy, so_far.labels, seen)
        except KernelFailure as failure:
            return failed(failure, so_far)
        return _timed(so_far, "check", start)

    def time(
        self,
        kernel: Kernel,
        so_far: Evaluation,
        against: Sequence[TimedSource],
        rival: str | None = None,
        cases: Sequence[Case] | None = None,
    ) -> Evaluation:
        """Time a kernel interleaved with others; a secret part of the timed calls' outputs is checked.

        `rival` names the contestant that it must beat (the last one of `against` if none is named): as soon as it has,
        or clearly has not, the rest of the looks is spared.
        """
        if so_far.verdict is not Verdict.OK:
            return so_far
        if not self.is_timed(kernel):
            return so_far.model_copy(update={"reason": "right in Triton's interpreter; not timed: there is no GPU"})
        start, before = time.monotonic(), conditions.Load.now()
        chosen = self.profile.benchmarks if cases is None else tuple(cases)
        plan = self.plan(chosen, kernel.name, rival or (against[-1].name if against else None))
        try:
            try:
                evaluation = self._contest(kernel, so_far, against, plan)
            except Disagreement:
                evaluation = self._contest(kernel, so_far, against, plan)  # nobody is accused for what may be chance
        except KernelFailure as failure:
            return failed(failure, so_far)
        happened = {**conditions.describe(self.pool), **before.until_now()}  # so_far may be of another day
        in_force = {"environment": happened, "sandbox": self.pool.layers}
        return _timed(evaluation.model_copy(update=in_force), "time", start)

    def _contest(
        self, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource], plan: schedule.Plan
    ) -> Evaluation:
        ticker, others = clock_check.Ticker.start(self), [c.name for c in against]
        samples = schedule.run(self, plan, [TimedSource.of(kernel), *against])
        evaluation = self.reckoner.result(so_far, plan, samples, others)
        return self._agree(evaluation, kernel, samples, others, ticker, plan.cases)

    def plan(self, cases: Sequence[Case], candidate: str, rival: str | None, margins: bool = True) -> schedule.Plan:
        """Declare a timing: cases, contestants, looks, what decides."""
        harness, many = self.harness, max(1, len(cases))
        pairs = max(harness.blocks, -(-harness.pairs // many))  # there and back, per case
        turns = 2 if pairs >= 2 * harness.blocks else 1
        return schedule.Plan(
            cases=tuple(cases),
            candidate=candidate,
            rival=rival,
            blocks=-(-pairs // turns),
            turns=turns,
            looks=harness.looks,
            confidence=1 - (1 - harness.confidence) / harness.looks,
            margins=self.margins if margins else (),
            drop_after=harness.drop_after,
            drop_below=harness.drop_below,
        )

    def deliver(self, session: Session, deliveries: Mapping[int, Delivery]) -> None:
        """Tell a worker where its next inputs will be, by slot. A GPU's worker gets them now, masked."""
        if not self.pool.on_gpu:
            places = {slot: self.inputs.placed(one, session.inputs, slot) for slot, one in deliveries.items()}
            session.prepare({slot: (place, []) for slot, place in places.items()})
        else:
            for slot, one in deliveries.items():
                header, blocks, session.untouched[slot] = self.inputs.masked(one, self.native)
                session.prepare({slot: (header, blocks)})

    def arm(self, session: Session, *deliveries: tuple[int, Delivery]) -> Sequence[int]:
        """Write inputs, by slot, past the caches, while the worker just waits; return the keys to a GPU's."""
        if self.pool.on_gpu:
            return [deliveries[0][1].sweep, *(key for _, one in deliveries for pair in one.keys for key in pair)]
        for slot, one in deliveries:
            self.inputs.write(one, session.inputs, slot, self.native)
        return ()

    def sweep(self) -> None:
        """Make the caches cold. A GPU's worker does it before each call."""
        if not self.pool.on_gpu:
            self._sweeper.sweep()

    def timed(self, session: Session, delivery: Delivery, slot: int = 0) -> Call:
        """Make one timed call. What goes on in the worker around it is charged: it is part of the call."""
        look = output_integrity.look(self, session, delivery, [slot])
        call = session.go([slot], lambda: self.arm(session, (slot, delivery)), look=look)
        if not session.inputs.intact(slot):
            raise KernelFailure(Verdict.INCORRECT, f"{delivery.case.name}: it wrote beside its buffers")
        return call

    def rehearse(self, session: Session, delivery: Delivery, slot: int) -> None:
        """Make an untimed call on other values: after a sweep the code that makes a call is cold as well."""
        if self.pool.on_gpu:  # what is in a slot there is readable once it is called
            slot = SPARE
            self.deliver(session, {slot: delivery})
        session.go([slot], lambda: self.arm(session, (slot, delivery)))

    def perhaps_compare(self, session: Session, delivery: Delivery, slot: int = 0) -> None:
        """Compare the output of a timed call in full, if the lot falls on it or nobody has seen it."""
        unseen = session.sees and not session.glimpses.get(slot)
        if unseen or self.inputs.verified(self.harness.verify_fraction):
            output_integrity.require(self, session, delivery, slot)

    def load(self, session: Session, contestant: TimedSource, cases: Sequence[Case]) -> None:
        """Import a contestant's file in its worker, and let it compile what it launches on these cases."""
        self.open(session, contestant.source, cases)
        self.pool.require_room(session)

    def open(self, session: Session, source: str, cases: Sequence[Case]) -> None:
        """Import a file in its worker. On a GPU it compiles, and autotunes, in a call on each case, then no more."""
        if not self.pool.programs:
            return session.load(source, self._builder([]))
        self.pool.fill(session, source)
        session.load(source, self._builder([]))
        for case in cases:
            delivery = self.inputs.draw(case)
            self.deliver(session, {SPARE: delivery})
            session.go([SPARE], functools.partial(self.arm, session, (SPARE, delivery)), self.harness.build_timeout_s)
        self.pool.keep(session, source)
        return session.seal()

    def _check_case(self, session: Session, case: Case, watch: Watch) -> None:
        published, secret = self.inputs.draw(case, case.seed), self.inputs.draw(case)
        stressed = [self.inputs.stressed(case, scales) for scales in self.problem.stress]
        for delivery in (published, secret, self.inputs.neighbour(secret), *stressed):
            self.deliver(session, {0: delivery})
            with self._watched(session, watch):
                self.timed(session, delivery)
            output_integrity.require(self, session, delivery, 0)
        self.inputs.renew()

    @contextlib.contextmanager
    def _watched(self, session: Session, watch: Watch) -> Generator[None]:
        """Read what an interpreted call did to memory, first of all where it broke: that may be why.

        Raises KernelFailure.
        """
        try:
            yield
        except KernelFailure as broken:
            if self.pool.stage is not None and broken.verdict is Verdict.CRASHED and session.alive():
                watch.require(session.watched())
            raise
        if self.pool.stage is not None:
            watch.require(session.watched())

    def is_timed(self, kernel: Kernel) -> bool:
        """Whether such a kernel has a time here: Triton's interpreter has none."""
        return kernel.language != "triton" or self.pool.device != "cpu"

    def _agree(
        self,
        evaluation: Evaluation,
        kernel: Kernel,
        samples: Samples,
        others: Sequence[str],
        ticker: clock_check.Ticker,
        cases: Sequence[Case],
    ) -> Evaluation:
        """Add what the clocks say of each other. Raises KernelFailure where they do not agree."""
        if not others:
            return evaluation
        trusted, rate = samples.believed(kernel.name), ticker.per_ns(self)
        found = clock_check.compare(samples, cases, kernel.name, trusted, self.pool.threads, rate)
        found = clock_check.slopes(self, TimedSource.of(kernel), found, cases)
        return evaluation.model_copy(update={"clocks": found})

    def _builder(self, reports: list[CompileReport]) -> Build:
        def build(request: Request) -> tuple[Path | None, str]:
            built = builder.build(request, self.pool.device, self.harness.build_timeout_s)
            reports.append(built.report)
            return built.path, built.report.log

        return build


def _timed(evaluation: Evaluation, step: str, start: float) -> Evaluation:
    seconds = {**evaluation.seconds, step: round(time.monotonic() - start, 3)}
    return evaluation.model_copy(update={"seconds": seconds})
