"""Tuning by predicted time: configurations are compiled and traced for a GPU that is not here, not executed.

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

from kernel_scientist.campaign.tuning.tuner import changes, tuned
from kernel_scientist.compile.source import KernelSource, Value
from kernel_scientist.gpu.capture.preview import Previewer
from kernel_scientist.hardware import cpu
from kernel_scientist.records.evaluation import geomean
from kernel_scientist.records.kernel import Case, Kernel, Try, Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.search import tunables

CASES = 6
"""Cases that configurations are compared on."""
LEAST_GAIN = 0.01
"""Predicted gain from which a configuration is entered as a kernel."""
Configuration = dict[str, Value]


@dataclass(frozen=True)
class ModelTuner:
    """Searches one kernel's tunables for a GPU of which there is only a model."""

    previewer: Previewer
    cases: Sequence[Case]
    """The problem's timed cases."""
    base: Kernel
    tries: int
    """Most configurations."""

    def tune(self, name: str, is_tried: Callable[[str], bool], stop: Callable[[], bool]) -> Kernel | None:
        """Return the best configuration as a kernel of that name; None if none is predicted to gain.

        `is_tried`: whether a source was evaluated before. `stop`: whether to try no further configuration.
        """
        few = [self.cases[len(self.cases) * i // CASES] for i in range(min(CASES, len(self.cases)))]
        base_us = self._predicted_or_none(self.base.source, few)
        if base_us is None:
            return None
        found = list(self._search(few, base_us, is_tried, stop))
        whole_us = self._predicted_or_none(self.base.source, self.cases)
        gaining = [one for one in found if one.log2_ratio is not None and one.log2_ratio > math.log2(1 + LEAST_GAIN)]
        for best in sorted(gaining, key=lambda one: -(one.log2_ratio or 0.0)):
            us = self._predicted_or_none(best.source, self.cases)
            if us and whole_us and whole_us / us > 1 + LEAST_GAIN:
                best = best.model_copy(update={"log2_ratio": round(math.log2(whole_us / us), 5)})
                return tuned(self.base, name, best, tuple(found), "compiled and predicted")
        return None

    def _search(
        self, cases: Sequence[Case], base_us: float, is_tried: Callable[[str], bool], stop: Callable[[], bool]
    ) -> Iterator[Try]:
        file, space, rng = KernelSource(self.base.source), tunables.space(self.base.source), random.Random(0)
        centre, best_us = tunables.values(self.base.source), base_us
        seen, left = {tuple(centre.values())}, self.tries
        singles = True
        with ThreadPoolExecutor(cpu.cores()) as pool:
            while left > 0 and not stop():
                near = [
                    one for one in _neighbours(centre, space, 1 if singles else 2) if tuple(one.values()) not in seen
                ]
                near = near if singles else rng.sample(near, min(len(near), cpu.cores() * 4))
                if not near and not singles:
                    return
                near = near[:left]
                seen |= {tuple(one.values()) for one in near}
                left -= len(near)
                sources = [tunables.configured(file, one) for one in near]
                work = [(one, source) for one, source in zip(near, sources, strict=True) if not is_tried(source)]

                def attempt(one: tuple[Configuration, str]) -> tuple[Try, float]:
                    return self._try(*one, cases, base_us, stop)

                results = list(pool.map(attempt, work))
                yield from (result for result, _ in results)
                gained = [(us, one) for (_, us), (one, _) in zip(results, work, strict=True) if us < best_us]
                singles = bool(gained)
                if gained:
                    best_us, centre = min(gained, key=lambda each: each[0])

    def _try(
        self, values: Configuration, source: str, cases: Sequence[Case], base_us: float, stop: Callable[[], bool]
    ) -> tuple[Try, float]:
        """Return a configuration's result and its predicted time, infinite if it has none."""
        start, us, reason, verdict = time.monotonic(), None, "", Verdict.OK
        try:
            if stop():
                raise KernelFailure(Verdict.TIMEOUT, "not tried: tuning was stopped")
            us = self._predicted_us(source, cases)
        except KernelFailure as failure:
            reason, verdict = failure.reason, failure.verdict
        result = Try(
            values=changes(self.base, values),
            source=source,
            verdict=verdict,
            reason=reason,
            log2_ratio=round(math.log2(base_us / us), 5) if us else None,
            seconds=round(time.monotonic() - start, 3),
        )
        return result, us or math.inf

    def _predicted_or_none(self, source: str, cases: Sequence[Case]) -> float | None:
        try:
            return self._predicted_us(source, cases)
        except KernelFailure:
            return None

    def _predicted_us(self, source: str, cases: Sequence[Case]) -> float:
        """Return the geometric mean of predicted times in us. Raises KernelFailure, also without a prediction."""
        found = self.previewer.preview(source, cases).predictions
        if not found:
            raise KernelFailure(Verdict.COMPILE_ERROR, "it was not predicted")
        return geomean([one.time_us for one in found])


def _neighbours(centre: Configuration, space: tunables.Space, distance: int) -> Iterator[Configuration]:
    for names in itertools.combinations(space, distance):
        others = ([value for value in space[name] if value != centre[name]] for name in names)
        for chosen in itertools.product(*others):
            yield {**centre, **dict(zip(names, chosen, strict=True))}
