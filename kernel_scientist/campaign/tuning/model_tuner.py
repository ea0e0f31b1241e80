"""Tuning by predicted time, for a GPU that is not here. Configurations are compiled, and some of their workgroups are
executed.

A neighbourhood search: all configurations that differ from the best one in a single value are predicted, the best of
them is the next centre; when none of them gains, random configurations that differ in two values follow. Only some of
the problem's cases are predicted; the winner must gain on all of them together.
"""

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from kernel_scientist.campaign.target import TuningSearch
from kernel_scientist.campaign.tuning.tuner import TuningProgress, tried, tuned
from kernel_scientist.compilers.source import KernelSource, Value
from kernel_scientist.hardware import cpu
from kernel_scientist.problems.problem import Profile
from kernel_scientist.records.evaluation import Prediction, geomean
from kernel_scientist.records.kernel import Case, Kernel, Try, Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.search import tunables

CASES = 6
"""Cases that configurations are compared on."""
LEAST_GAIN = 0.01
"""Predicted gain from which a configuration is entered as a kernel."""
Configuration = dict[str, Value]


class Predictor(Protocol):
    """Predicts a kernel's times."""

    profile: Profile

    def predict(self, kernel: Kernel, cases: Sequence[Case]) -> Sequence[Prediction]:
        """Return the predicted times of some cases. Raises KernelFailure."""
        ...


def best(predictor: Predictor, search: TuningSearch, tries: int) -> Kernel | None:
    """Return the best configuration of a kernel by predicted time; None if none is predicted to gain."""
    cases = predictor.profile.benchmarks
    tuner = ModelTuner(predictor.predict, cases, search.base, tries, search.is_tried, search.stop)
    return tuner.tune(search.name)


@dataclass(frozen=True)
class ModelTuner:
    """Searches one kernel's tunables for a GPU of which there is only a model."""

    predict: Callable[[Kernel, Sequence[Case]], Sequence[Prediction]]
    """Returns the predicted times of a kernel's cases. Raises KernelFailure."""
    cases: Sequence[Case]
    """The problem's timed cases."""
    base: Kernel
    tries: int
    """Most configurations."""
    is_tried: Callable[[str], bool]
    """Whether a source was evaluated before."""
    stop: Callable[[], bool]
    """Whether to try no further configuration."""

    def tune(self, name: str) -> Kernel | None:
        """Return the best configuration as a kernel of that name; None if none is predicted to gain."""
        few = [self.cases[len(self.cases) * i // CASES] for i in range(min(CASES, len(self.cases)))]
        base_us, failure = self._predicted(self.base.source, few)
        if failure:
            return None
        shown = TuningProgress(self.base, self.tries)
        found = [shown.done(one) for one in self._search(few, base_us)]
        whole_us, failure = self._predicted(self.base.source, self.cases)
        gaining = [one for one in found if one.log2_ratio is not None and one.log2_ratio > math.log2(1 + LEAST_GAIN)]
        for best in sorted(gaining, key=lambda one: -(one.log2_ratio or 0.0)):
            ratio = whole_us / self._predicted(best.source, self.cases)[0]
            if not failure and ratio > 1 + LEAST_GAIN:
                best = best.model_copy(update={"log2_ratio": round(math.log2(ratio), 5)})
                return tuned(self.base, name, best, tuple(found), "compiled and predicted")
        return None

    def _search(self, cases: Sequence[Case], base_us: float) -> Iterator[Try]:
        file, space, rng = KernelSource(self.base.source), tunables.space(self.base.source), random.Random(0)
        centre, best_us = tunables.values(self.base.source), base_us
        seen, left, distance = {tuple(centre.values())}, self.tries, 1
        with ThreadPoolExecutor(cpu.cores()) as pool:
            while left > 0 and not self.stop():
                near = [one for one in _neighbours(centre, space, distance) if tuple(one.values()) not in seen]
                if distance == 2:
                    near = rng.sample(near, min(len(near), cpu.cores() * 4))
                    if not near:
                        return
                near = near[:left]
                seen |= {tuple(one.values()) for one in near}
                left -= len(near)
                sources = [(one, tunables.configured(file, one)) for one in near]
                work = [(one, source) for one, source in sources if not self.is_tried(source)]
                results = list(pool.map(partial(self._try, cases, base_us), work))
                yield from (result for result, _ in results)
                gained = [(us, one) for (_, us), (one, _) in zip(results, work, strict=True) if us < best_us]
                distance = 1 if gained else 2
                if gained:
                    best_us, centre = min(gained, key=lambda each: each[0])

    def _try(self, cases: Sequence[Case], base_us: float, one: tuple[Configuration, str]) -> tuple[Try, float]:
        """Return a configuration's result and its predicted time, infinite if it has none."""
        began, (values, source) = time.monotonic(), one
        if self.stop():
            us, failure = math.inf, KernelFailure(Verdict.TIMEOUT, "not tried: tuning was stopped")
        else:
            us, failure = self._predicted(source, cases)
        verdict, reason = (failure.verdict, failure.reason) if failure else (Verdict.OK, "")
        return tried(self.base, values, source, verdict, reason, base_us / us, began), us

    def _predicted(self, source: str, cases: Sequence[Case]) -> tuple[float, KernelFailure | None]:
        """Return the geometric mean of predicted times in us; infinity and the reason without a prediction."""
        try:
            found = self.predict(self.base.model_copy(update={"source": source}), cases)
        except KernelFailure as failure:
            return math.inf, failure
        if not found:
            return math.inf, KernelFailure(Verdict.COMPILE_ERROR, "it was not predicted")
        return geomean([one.time_us for one in found]), None


def _neighbours(centre: Configuration, space: tunables.Space, distance: int) -> Iterator[Configuration]:
    for names in itertools.combinations(space, distance):
        others = ([value for value in space[name] if value != centre[name]] for name in names)
        for chosen in itertools.product(*others):
            yield {**centre, **dict(zip(names, chosen, strict=True))}
