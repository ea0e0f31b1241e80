"""Calls that are watched from inside, untimed, for what the problem's policy asks: is the work done by own code?"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernel_scientist.evaluate.correctness.policy import Observed
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.sandbox.failure import KernelFailure

if TYPE_CHECKING:
    from kernel_scientist.evaluate.evaluator import Evaluator
    from kernel_scientist.workers.client import Session

TIMED_CASES = 4
"""How many of the timed cases are watched where no library may do the work."""


def cases(evaluator: "Evaluator", checked: Sequence[Case], timed: bool) -> tuple[Case, ...]:
    """Return on which cases to watch: one that is checked, and, where it matters, some that are timed, by lot.

    A kernel that has a library compute on those alone would gain by it.
    """
    found = evaluator.profile.benchmarks if timed and not evaluator.problem.policy.library else ()
    return (*checked[-1:], *(found[i] for i in evaluator.inputs.lot(len(found), TIMED_CASES)))


def observe(evaluator: "Evaluator", session: "Session", chosen: Sequence[Case]) -> Observed:
    """Return what was seen of a call on each case; then mute the kernel's own code: is an output right without it?

    Raises KernelFailure for a wrong output of a kernel that was not muted. Muted calls come last: a kernel that waits
    for what its native code would have done takes its worker with it.
    """
    seen = [Observed.read(_call(evaluator, session, case, mute=False)) for case in chosen]
    for i, case in enumerate(chosen):
        if seen[i].native_calls == 0:
            continue
        try:
            _call(evaluator, session, case, mute=True)
        except KernelFailure as failure:
            if failure.verdict is not Verdict.INCORRECT:
                break
        else:
            seen[i] = replace(seen[i], right_when_muted=True)
    return Observed.of(seen)


def _call(evaluator: "Evaluator", session: "Session", case: Case, mute: bool) -> dict[str, object]:
    """Make one call on new inputs; its output must be right."""
    delivery = evaluator.inputs.draw(case)
    evaluator.deliver(session, {0: delivery})
    reply = session.observe(mute=mute, keys=evaluator.arm(session, (0, delivery)))
    evaluator.comparison.require(delivery, *session.fetch(evaluator.comparison.room(delivery)))
    return reply
