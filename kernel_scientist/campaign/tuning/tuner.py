"""Tuning by measured time: configurations proposed by `search.tunables` are timed against the untuned kernel."""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.compile.source import Value
from kernel_scientist.evaluate.evaluator import TimedSource
from kernel_scientist.records.kernel import Experiment, Kernel, Try, Verdict, digest
from kernel_scientist.search import tunables

Hold = Callable[[], AbstractContextManager[None]]
"""Context manager that holds the device's lock."""


class Tuner:
    """Searches one kernel's tunables."""

    def __init__(self, context: EvaluationContext, base: Kernel, hold: Hold) -> None:
        self.context, self.base, self.hold = context, base, hold
        # one stage without a margin is enough: the best configuration is evaluated in full as a kernel of the campaign
        quick = context.params.harness.model_copy(update={"stages": 1, "noise_runs": 0})
        self.evaluator = context.evaluator.with_harness(quick)

    def tune(self, name: str, is_tried: Callable[[str], bool], stop: Callable[[], bool]) -> Kernel | None:
        """Return the best other configuration as a kernel of that name; None when there was nothing to try.

        `is_tried`: whether a source was evaluated before. `stop`: whether to try no further configuration. Raises
        InfrastructureError when a timing fails for reasons other than the kernel.
        """
        params, base = self.context.params, self.base
        seed = int(digest(f"{params.search.seed}/{base.name}/{base.digest}")[:8], 16)
        tries = tunables.tune(base, self._measure, params.tuning.tries, seed, is_tried, stop)
        best = tunables.winner(tries)
        if best is None:
            return None
        return tuned(base, name, best, tries, "timed against it")

    def _measure(self, values: Mapping[str, Value], source: str) -> Try:
        start = time.monotonic()
        kernel = Kernel(name=f"{self.base.name}-try", language=self.base.language, source=source)
        with self.context.quiet.building():
            evaluation = self.evaluator.check(kernel, self.evaluator.compile(kernel))
        if evaluation.verdict is Verdict.OK:
            with self.hold():
                evaluation = self.evaluator.time(kernel, evaluation, [TimedSource.of(self.base)])
        speedup = evaluation.speedup_over(self.base.name)
        gained = speedup is not None and evaluation.verdict is Verdict.OK
        return Try(
            values=changes(self.base, values),
            source=source,
            verdict=evaluation.verdict,
            reason=evaluation.reason,
            log2_ratio=round(math.log2(speedup.ratio), 5) if speedup and gained else None,
            seconds=round(time.monotonic() - start, 3),
        )


def changes(base: Kernel, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values that are not the kernel's own."""
    own = tunables.values(base.source)
    return {name: value for name, value in values.items() if value != own[name]}


def tuned(base: Kernel, name: str, best: Try, tries: tuple[Try, ...], compared: str) -> Kernel:
    """Return the best configuration of a kernel as a kernel. `compared`: what was done with the configurations."""
    values = ", ".join(f"{k} {v}" for k, v in best.values.items())
    result = f"{2**best.log2_ratio:.3f}x" if best.log2_ratio is not None else best.verdict.value
    experiment = Experiment(
        title=f"tuned: {values}"[:120],
        description=f"The best of {len(tries)} configurations of {base.name} that were {compared}.",
        rubric=(f"set {values}",),
        uplift=(0.0, 0.0),
        innovation=0,
    )
    return Kernel(
        name=name,
        language=base.language,
        source=best.source,
        base=base.name,
        reference=base.name,
        experiment=experiment,
        generation=base.generation,
        report=f"{values}: {result} against {base.name} during tuning",
        tuned_from=base.name,
        tries=tries,
    )
