"""Times below the floor: the kernel is timed again with fresh workers before anybody is accused."""

from collections.abc import Sequence

from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.timing import schedule
from kernel_scientist.evaluation.timing.conditions import Load
from kernel_scientist.evaluation.timing.estimate import Estimator, Samples
from kernel_scientist.evaluation.timing.plan import TimedSource, TimingPlan
from kernel_scientist.records.evaluation import Timing
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox.failure import KernelFailure


def time_again_if_impossible(
    driver: Driver, estimator: Estimator, plan: TimingPlan, sources: Sequence[TimedSource]
) -> Samples:
    """Time all sources by the plan (`schedule.run`), twice if a time of the candidate is impossible.

    Raises KernelFailure when the candidate fails, or one of its cases is impossible both times.
    """
    before = Load.now()
    samples = schedule.run(driver, plan, sources)
    if not (first := estimator.impossible(plan, samples)):
        return samples
    again = schedule.run(driver, plan, sources)
    require_possible([first, estimator.impossible(plan, again)], before)
    return again


def require_possible(runs: Sequence[Sequence[Timing]], before: Load) -> None:
    """Raise KernelFailure if a case was below its floor in each of several runs, which had workers of their own.

    runs: the impossible times of each run; `before`: the load counters when the first began.
    """
    each = [{timing.case: timing for timing in run} for run in runs]
    cases = [case for case in each[0] if all(case in run for run in each)] if len(each) > 1 else []
    if cases:
        load = before.until_now()
        limits = tuple(
            f"{case}: {' and '.join(f'{run[case].time_us:.3g}' for run in each)} us, below the floor of "
            f"{each[0][case].floor_us:.3g} us; load {load['load']}, others used {load['others_percent'] or '?'} % of "
            "the machine's CPU time"
            for case in cases
        )
        reason = f"quarantined: below the floor of this machine in {len(each)} runs with fresh workers; {limits[0]}"
        raise KernelFailure(Verdict.REJECTED, reason, limits)
