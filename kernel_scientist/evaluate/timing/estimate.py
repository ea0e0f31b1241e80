"""From samples to figures: medians with intervals, paired ratios, and the floor that no time may lie below."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.evaluate.timing import schedule
from kernel_scientist.evaluate.timing.samples import By, Samples
from kernel_scientist.evaluate.timing.statistics import median_interval, ratio
from kernel_scientist.hardware.peaks import Machine, floor_us
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.evaluation import Evaluation, Speedup, Timing
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.sandbox.failure import KernelFailure

FLOOR_SLACK = 1.05
"""How far below the roofline floor a time may lie: the figures behind the floor are no better than that."""

_ACTS = ("harness-patch", "timer-patch", "file-access")
_HIDES = ("obfuscation", "kernelguard:obfuscated-exec", "too-long", "unreadable")
REACHING = frozenset(f"high:{label}" for label in (*_ACTS, *_HIDES))
"""Labels of files that reach for the code that calls them, or hide what they do."""


@dataclass(frozen=True)
class Reckoner:
    """Works out what was measured of a problem's cases."""

    problem: Problem
    machine: Machine | None
    """Peaks of the device; None for a GPU that is in no table."""
    confidence: float

    def result(self, so_far: Evaluation, plan: schedule.Plan, samples: Samples, others: Sequence[str]) -> Evaluation:
        """Return the evaluation with what was measured. Raises KernelFailure when a time is not possible."""
        for timing in self.timings(samples, plan.candidate, plan.cases):
            if timing.floor_us is not None and timing.time_us * FLOOR_SLACK < timing.floor_us:
                words = f"{timing.case}: {timing.time_us:.2f} us, at least {timing.floor_us:.2f} us are needed"
                raise KernelFailure(Verdict.REJECTED, "quarantined: below the roofline floor of this machine", (words,))
        samples, reaching = self.charged(samples, plan.candidate, so_far.labels)
        timings = self.timings(samples, plan.candidate, plan.cases)
        speedups = tuple(self.speedup(samples, plan, other) for other in others)
        labels = list(so_far.labels)
        labels += [
            f"measured:slower-case:{case}" for s in speedups if s.against == plan.rival for case in s.slower_cases
        ]
        labels += ["measured:works-around-the-call"] if samples.restless(plan.candidate) else []
        words = f"what usually passes beside a call is charged to it: its file is labelled {reaching}"
        evidence = (*so_far.evidence, *([words] if reaching else []))
        found = {"timings": timings, "speedups": speedups, "labels": tuple(labels), "evidence": evidence}
        return so_far.model_copy(update=found)

    def charged(self, samples: Samples, name: str, labels: Sequence[str]) -> tuple[Samples, str]:
        """Return the samples with what a kernel owes that reaches for the harness, and the label that says so.

        Who has the worker in his hands can have it work where an honest one is busy with something else, and no clock
        shows that. Such a kernel is not refused: it has to be faster by more than it may have hidden.
        """
        found = next((label for label in labels if label in REACHING), "")
        return (samples.owing(name), found) if found and samples.beside_ns else (samples, "")

    def timings(self, samples: Samples, name: str, cases: Sequence[Case]) -> tuple[Timing, ...]:
        """Return one contestant's timing per case."""
        out: list[Timing] = []
        for case in cases:
            values = samples.of(name, case.name)
            middle, interval = median_interval(values, self.confidence)
            floor = floor_us(self.problem.work(case), self.machine) if self.machine else None
            out.append(
                Timing(case=case.name, time_us=middle, interval_us=interval, floor_us=floor, samples_us=tuple(values))
            )
        return tuple(out)

    def speedup(self, samples: Samples, plan: schedule.Plan, against: str) -> Speedup:
        """Return how many times faster the candidate was than `against` in the same blocks."""
        name, margin = plan.candidate, plan.margin(samples.looks)
        middle, interval = ratio(samples.blocks_of(name), samples.blocks_of(against), plan.confidence)
        cases: dict[str, float] = {}
        slower: list[str] = []
        for case in samples.case_names():
            of_case = samples.blocks_of(name, case), samples.blocks_of(against, case)
            alone = samples.blocks_of(name, case, By.CALL), samples.blocks_of(against, case, By.CALL)
            cases[case], _ = ratio(*of_case, plan.confidence)
            _, (_, high) = ratio(*alone, plan.confidence)
            slower += [case] if high < 1 - margin else []
        return Speedup(
            against=against,
            ratio=middle,
            interval=interval,
            seen=samples.seen(name, against, plan.confidence),
            margin=margin,
            looks=samples.looks,
            cases=cases,
            beside_us={case: beside / 1000 for case, beside in samples.beside_ns.items()},
            slower_cases=tuple(slower),
        )
