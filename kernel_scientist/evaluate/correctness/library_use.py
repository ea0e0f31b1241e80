"""Untimed calls under observation, for what the problem's policy asks: does the kernel's own code do the work?"""

from collections.abc import Sequence
from dataclasses import replace

from kernel_scientist.evaluate.correctness.policy import Observed
from kernel_scientist.evaluate.driver import Driver
from kernel_scientist.problems.taskfolder import Profile
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.client import WorkerClient

TIMED_CASES = 4
"""How many of the timed cases are observed where no library may do the work."""


def cases(driver: Driver, profile: Profile, checked: Sequence[Case], timed: bool) -> tuple[Case, ...]:
    """Return the cases to observe: one that is checked, and, where it matters, some timed ones drawn at random.

    A kernel that lets a library compute on those alone would gain by it.
    """
    others = profile.benchmarks if timed and not driver.problem.policy.library else ()
    return (*checked[-1:], *(others[i] for i in driver.inputs.chosen(len(others), TIMED_CASES)))


def observe(driver: Driver, worker: WorkerClient, chosen: Sequence[Case]) -> Observed:
    """Observe a call on each case; then mute the kernel's own code: is an output right without it?

    Raises KernelFailure for a wrong output of a kernel that was not muted. Muted calls come last: a kernel that waits
    for what its native code would have done takes its worker with it.
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
    """Make one call on new inputs; its output must be right."""
    inputs = {0: driver.inputs.draw(case)}
    driver.deliver(worker, inputs)
    keys = driver.write(worker, inputs)
    reply, output = worker.observe(mute, keys, driver.comparison.room(inputs[0]))
    driver.verify(worker, [inputs[0]], [output])
    return reply
