"""Observed calls (untimed): find out whether the kernel's own code does the work, as the problem's policy requires."""

from collections.abc import Sequence
from dataclasses import replace

from kernel_scientist.evaluate.correctness.policy import Observed
from kernel_scientist.evaluate.driver import Driver
from kernel_scientist.problems.problem import Profile
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.client import WorkerClient

TIMED_CASES = 4
"""Number of timed cases that are observed if the policy forbids library work."""


def cases(driver: Driver, profile: Profile, checked: Sequence[Case], timed: bool) -> tuple[Case, ...]:
    """Return the cases to observe: one checking case and, if library work is forbidden, some random timed ones.

    Timed cases are included because a kernel could use a library on them only, to appear faster.
    """
    others = profile.benchmarks if timed and not driver.problem.policy.library else ()
    return (*checked[-1:], *(others[i] for i in driver.inputs.chosen(len(others), TIMED_CASES)))


def observe(driver: Driver, worker: WorkerClient, chosen: Sequence[Case]) -> Observed:
    """Observe a call on each case; then disable the kernel's own code and check whether the output is still correct.

    Raises KernelFailure for a wrong output of a call that was not muted. Muted calls come last: a kernel that waits
    for an effect of its muted code hangs, and its worker is lost.
    """
    observed = [Observed.read(_call(driver, worker, case, mute=False)) for case in chosen]
    for i, case in enumerate(chosen):
        if observed[i].native_calls == 0:
            continue
        try:
            _call(driver, worker, case, mute=True)
        except KernelFailure as failure:
            if failure.verdict is not Verdict.INCORRECT:
                break
        else:
            observed[i] = replace(observed[i], right_when_muted=True)
    return Observed.of(observed)


def _call(driver: Driver, worker: WorkerClient, case: Case, mute: bool) -> dict[str, object]:
    """Make one call on new inputs. Raises KernelFailure if its output is wrong."""
    inputs = {0: driver.inputs.draw(case)}
    driver.deliver(worker, inputs)
    keys = driver.write(worker, inputs)
    reply, output = worker.observe(mute, keys, driver.comparison.room(inputs[0]))
    driver.verify(worker, [inputs[0]], [output])
    return reply
