"""Recorded kernels for tests."""

from kernel_scientist.records.evaluation import Evaluation, PairedTime, Speedup, Timing, Trial
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict

REFERENCE_US = 100.0
"""The reference's time in every run."""


def speedup(against: str, ratio: float, time_us: float, interval: tuple[float, float], margin: float = 0.0) -> Speedup:
    times = PairedTime(time_us=time_us, against_us=time_us * ratio)
    return Speedup(against=against, ratio=ratio, interval=interval, margin=margin, cases={"c": times})


def trial(
    name: str,
    ratio: float | None,
    over: dict[str, tuple[float, float]] | None = None,
    base: str | None = None,
    margin: float = 0.0,
) -> Trial:
    """A kernel with this speedup over the reference; `over` gives the intervals over other kernels."""
    kernel = Kernel(name=name, language="cpp", source=f"# {name}", base=base, reference=base)
    if ratio is None:
        return Trial(kernel=kernel, evaluation=Evaluation(verdict=Verdict.INCORRECT, reason="wrong"))
    us = REFERENCE_US / ratio
    speedups = [speedup(REFERENCE, ratio, us, (ratio * 0.9, ratio * 1.1))]
    speedups += [speedup(k, (a + b) / 2, us, (a, b), margin) for k, (a, b) in (over or {}).items()]
    timing = Timing(case="c", time_us=us, interval_us=(0.9 * us, 1.1 * us))
    return Trial(kernel=kernel, evaluation=Evaluation(verdict=Verdict.OK, timings=(timing,), speedups=tuple(speedups)))
