"""Tuning by measured time: configurations proposed by `search.tunables` are timed against the untuned kernel."""

import logging
import math
import time
from collections.abc import Mapping
from functools import partial

from kernel_scientist.campaign.target import Builder, Target, Timer, TuningSearch
from kernel_scientist.compilers.source import Value
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Experiment, Kernel, Try, Verdict, digest
from kernel_scientist.records.text import number_of
from kernel_scientist.search import tunables

progress = logging.getLogger("kernel_scientist.progress")
SAY_S = 30.0
"""Least time between two progress lines of a kernel's tuning, in seconds."""


class TuningProgress:
    """Says how far the tuning of a kernel is: at its beginning, then at most every SAY_S seconds."""

    def __init__(self, base: Kernel, tries: int) -> None:
        """`tries`: most configurations."""
        self.base, self.tries, self._count, self._best = base, tries, 0, 0.0
        self._latest = time.monotonic()
        progress.info("tuning %s: at most %s", base.name, number_of(tries, "configuration"))

    def done(self, one: Try) -> Try:
        """Take note of a configuration's result; return it."""
        self._count += 1
        self._best = max(self._best, one.log2_ratio or 0.0)
        if (now := time.monotonic()) - self._latest >= SAY_S:
            self._latest = now
            best = f"the best is {2**self._best:.3f}x as fast" if self._best else "none is faster"
            progress.info("tuning %s: %d of at most %d done, %s", self.base.name, self._count, self.tries, best)
        return one


def tune(target: Target, search: TuningSearch) -> Kernel | None:
    """Return the best other configuration as a kernel; None when there was nothing to try.

    Raises InfrastructureError when a timing fails for reasons other than the kernel.
    """
    params, base = target.params, search.base
    # one stage without a margin is enough: the best configuration is evaluated in full as a kernel of the campaign
    quick = params.harness.model_copy(update={"stages": 1, "noise_runs": 0})
    seed = int(digest(f"{params.search.seed}/{base.name}/{base.digest}")[:8], 16)
    measure = partial(_measured, target.builder, target.with_harness(quick), search)
    shown = TuningProgress(base, params.tuning.tries)

    def noted(values: Mapping[str, Value], source: str) -> Try:
        return shown.done(measure(values, source))

    tries = tunables.tune(base, noted, params.tuning.tries, seed, search.is_tried, search.stop)
    best = tunables.winner(tries)
    return tuned(base, search.name, best, tries, "timed against it") if best else None


def _measured(
    builder: Builder | None, timer: Timer, search: TuningSearch, values: Mapping[str, Value], source: str
) -> Try:
    began, base = time.monotonic(), search.base
    kernel = Kernel(name=f"{base.name}-try", language=base.language, source=source)
    evaluation = Evaluation(verdict=Verdict.OK)
    if builder is not None:
        with search.building():
            evaluation = builder.check(kernel, builder.compile(kernel))
    if evaluation.verdict is Verdict.OK:
        with search.device():
            evaluation = timer.time(kernel, evaluation, [TimedSource.of(base)])
    speedup = evaluation.speedup_over(base.name)
    ratio = speedup.ratio if speedup else None
    return tried(base, values, source, evaluation.verdict, evaluation.reason, ratio, began)


def tried(
    base: Kernel,
    values: Mapping[str, Value],
    source: str,
    verdict: Verdict,
    reason: str,
    ratio: float | None,
    began: float,
) -> Try:
    """Return a configuration's result. `ratio`: its speedup over the base, if any; `began`: when, by the monotonic
    clock."""
    own = tunables.values(base.source)
    return Try(
        values={name: value for name, value in values.items() if value != own[name]},
        source=source,
        verdict=verdict,
        reason=reason,
        log2_ratio=round(math.log2(ratio), 5) if ratio else None,
        seconds=round(time.monotonic() - began, 3),
    )


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
