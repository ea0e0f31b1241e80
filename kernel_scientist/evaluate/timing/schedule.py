"""Timing contestants against each other in interleaved blocks (ABBA, generalised), each in its own live worker.

Within a block every contestant is called there and back per case, where there are few cases twice so: in a random
order, then in the reverse of it, so that a drift that is linear in time cancels. Both halves have inputs of their own,
the same for all contestants, delivered before one sweep of the caches: what one call reads is cold for the next, which
has other data. After each look, of which there are `harness.looks` at most, the workers are replaced by fresh ones and
it is decided whether to go on.
"""

import random
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernel_scientist.evaluate.timing.plan import LEAST_LOOKS, Plan
from kernel_scientist.evaluate.timing.samples import By, Samples
from kernel_scientist.evaluate.timing.statistics import attainable, ratio
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.call import Call
from kernel_scientist.workers.client import Session

if TYPE_CHECKING:
    from kernel_scientist.evaluate.evaluator import Evaluator, TimedSource


def run(evaluator: "Evaluator", plan: Plan, contestants: Sequence["TimedSource"]) -> Samples:
    """Time all contestants by the plan.

    Raises KernelFailure when the candidate fails, InfrastructureError when another contestant does: that is no fault
    of the candidate.
    """
    samples, rng = Samples(), random.Random()
    for look in range(plan.looks):
        with evaluator.pool.sessions(len(contestants), timing=True) as workers:
            assert len({c.name for c in contestants}) == len(contestants), "two contestants have one name"
            sessions = {contestant.name: worker for contestant, worker in zip(contestants, workers, strict=True)}
            for contestant in contestants:
                with blame(contestant.name, plan.candidate):
                    evaluator.load(sessions[contestant.name], contestant, plan.cases)
            before = _warm_up(evaluator, plan, sessions)
            for block in range(plan.blocks):
                for order in (rng.sample(list(sessions), len(sessions)) for _ in range(plan.turns)):
                    for half in (order, order[::-1]):
                        _half(evaluator, plan, samples, {name: sessions[name] for name in half}, rng, (look, block))
                with blame(plan.candidate, plan.candidate):
                    _require_untouched(sessions, plan.candidate, before)
                if look == 0 and hopeless(plan, samples, block + 1):
                    return samples
        samples.charge(plan.candidate)
        if decided(plan, samples, look + 1):
            return samples
    return samples


def _half(
    evaluator: "Evaluator",
    plan: Plan,
    samples: Samples,
    sessions: dict[str, Session],
    rng: random.Random,
    place: tuple[int, int],
) -> None:
    """Call every contestant once per case, in the order of `sessions`, all on the same new inputs.

    Values are written just before each call, past the swept caches; outputs are compared, as far as the lot falls on
    them, when all have run.
    """
    deliveries = {slot: evaluator.inputs.draw(case) for slot, case in enumerate(plan.cases)}
    for name, session in sessions.items():
        with blame(name, plan.candidate):
            evaluator.deliver(session, deliveries)
    evaluator.sweep()
    slot = rng.choice(list(deliveries))
    rehearsal = evaluator.inputs.another(deliveries[slot])
    for name, session in sessions.items():
        with blame(name, plan.candidate):
            evaluator.rehearse(session, rehearsal, slot)
    for slot in rng.sample(list(deliveries), len(deliveries)):
        calls: dict[str, Call] = {}
        for name, session in sessions.items():
            with blame(name, plan.candidate), _alone(session, sessions.values()):
                calls[name] = evaluator.timed(session, deliveries[slot], slot)
            samples.add(name, plan.cases[slot].name, *place, calls[name])
        _require_swept(plan, samples.believed(plan.candidate), calls)
    for slot, delivery in deliveries.items():
        for name, session in sessions.items():
            with blame(name, plan.candidate):
                evaluator.perhaps_compare(session, delivery, slot)


def _require_swept(plan: Plan, believed: str, calls: Mapping[str, Call]) -> None:
    """Raise KernelFailure when a worker has not made the sweep before its call: all of them have the same sum."""
    for name, call in calls.items():
        if call.swept != calls[believed].swept:
            with blame(name, plan.candidate):
                raise KernelFailure(Verdict.REJECTED, "it left out the sweep of the caches before its call")


@contextmanager
def _alone(session: Session, everybody: Iterable[Session]) -> Generator[None]:
    """Stop the other workers meanwhile on a GPU: what they launched there would be at this one's expense, and no clock
    of the host's shows it.
    """
    others = [other.process for other in everybody if other.on_gpu and other is not session and other.process]
    for other in others:
        other.pause()
    try:
        yield
    finally:
        for other in others:
            other.resume()


def _scheduling(session: Session) -> dict[int, object]:
    return session.process.scheduling() if session.process is not None else {}


def _warm_up(evaluator: "Evaluator", plan: Plan, sessions: dict[str, Session]) -> dict[str, dict[int, object]]:
    """Return how the system ran each contestant's threads when its first call had ended."""
    before: dict[str, dict[int, object]] = {}
    deliveries = {slot: evaluator.inputs.draw(case) for slot, case in enumerate(plan.cases)}
    start, rounds = time.monotonic(), 0
    while rounds < evaluator.harness.warmup_calls or time.monotonic() - start < evaluator.warmup_s:
        rounds += 1
        for name, session in sessions.items():
            with blame(name, plan.candidate):
                evaluator.deliver(session, deliveries)
                for slot, delivery in deliveries.items():
                    evaluator.timed(session, delivery, slot)
                    if name not in before:
                        before[name] = _scheduling(session)
                    evaluator.perhaps_compare(session, delivery, slot)
    return before


def _require_untouched(
    sessions: Mapping[str, Session], candidate: str, before: Mapping[str, Mapping[int, object]]
) -> None:
    """Raise KernelFailure when the cores or the scheduling of another contestant's threads were changed meanwhile."""
    for name, session in sessions.items():
        known = before.get(name, {})
        if name != candidate and any(known.get(t, how) != how for t, how in _scheduling(session).items()):
            raise KernelFailure(
                Verdict.REJECTED, "while it was timed another worker's cores or scheduling were changed"
            )


def hopeless(plan: Plan, samples: Samples, done: int) -> bool:
    """Whether the candidate is so much slower than its rival that the rest of the first look is spared."""
    if plan.rival is None or done != plan.drop_after:
        return False
    samples.charge(plan.candidate)
    ours, theirs = samples.blocks_of(plan.candidate)[0], samples.blocks_of(plan.rival)[0]
    return max(b / a for a, b in zip(ours, theirs, strict=True)) < plan.drop_below


def decided(plan: Plan, samples: Samples, look: int) -> bool:
    """Whether no further look is needed: the candidate is slower by the test, or has no chance left to be found faster,
    or is faster in two sets of workers. Within one set nobody knows how much another would differ.
    """
    if plan.rival is None:
        return False
    shown = hope = True
    for by in samples.grounds:
        ours, theirs = (samples.blocks_of(who, by=by) for who in (plan.candidate, plan.rival))
        now, then = (plan.margin(at) if by is By.CREDIT else 0.0 for at in (look, plan.looks))
        _, (low, high) = ratio(ours, theirs, plan.confidence)
        if by is By.CREDIT and high < 1:
            return True
        shown = shown and low > 1 + now
        hope = hope and attainable(ours, theirs, plan.confidence, then, (look, plan.looks))
    return (shown and look >= LEAST_LOOKS) or (look < plan.looks and not hope)


class blame:
    """Turn the failure of a contestant that is not the candidate into an infrastructure error."""

    def __init__(self, name: str, candidate: str) -> None:
        self.name, self.candidate = name, candidate

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, KernelFailure) and self.name != self.candidate:
            raise InfrastructureError(f"contestant {self.name} failed while it was timed: {error.reason}") from error
