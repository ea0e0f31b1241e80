"""Timing contestants against each other in interleaved blocks (ABBA, generalised), each in its own live worker.

Within a block every contestant is called there and back per case, where there are few cases twice so: in a random
order, then in the reverse of it, so that a drift that is linear in time cancels. Both halves have inputs of their own,
the same for all contestants, delivered before one sweep of the caches: what one call reads is cold for the next, which
has other data. After each look, of which there are `harness.looks` at most, the workers are replaced by fresh ones and
it is decided whether to go on.
"""

import random
import statistics
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from kernel_scientist.errors import InfrastructureError
from kernel_scientist.harness.call import Call
from kernel_scientist.harness.failure import KernelFailure
from kernel_scientist.harness.session import Session
from kernel_scientist.harness.statistics import attainable, ratio
from kernel_scientist.population import REFERENCE
from kernel_scientist.records import Case, Verdict, geomean

if TYPE_CHECKING:
    from kernel_scientist.harness.verifier import Contestant, Verifier


LEAST_LOOKS = 2
"""Sets of workers in which a kernel must have been faster, where so many looks are allowed."""
FREE_NS, FREE_CALL = 5000, 0.02
"""What may pass outside a worker's clock before it is charged, beyond what is usual, and as a share of the call."""
FREE_EVENTS_NS = 1000
"""The same of what its clock shows beyond a GPU's events: both are read beside each other in native code."""


@dataclass(frozen=True)
class Plan:
    """What is to be timed, declared before the first sample."""

    cases: tuple[Case, ...]
    candidate: str
    rival: str | None
    """Whom the candidate must beat. None: all looks are taken, whatever they show."""
    blocks: int
    """Per look."""
    turns: int
    """How often a block calls every contestant there and back: twice as many calls, of which the quickest counts."""
    looks: int
    confidence: float
    """Of the interval at each look: the error is shared among the looks."""
    margins: tuple[float, ...] = ()
    """What the interval must clear at each look."""
    drop_after: int = 0
    drop_below: float = 0.0

    def margin(self, look: int) -> float:
        """Return what the lower bound must be above 1 by, after `look` looks."""
        return self.margins[min(look, len(self.margins)) - 1] if self.margins else 0.0


@dataclass
class Samples:
    """Timed calls by contestant and case; then by process and block. A process is a look's set of workers."""

    calls: dict[tuple[str, str], list[list[list[Call]]]] = field(
        default_factory=dict[tuple[str, str], list[list[list[Call]]]]
    )

    def add(self, name: str, case: str, process: int, block: int, call: Call) -> None:
        """Record one timed call."""
        processes = self.calls.setdefault((name, case), [])
        while len(processes) <= process:
            processes.append([])
        while len(processes[process]) <= block:
            processes[process].append([])
        processes[process][block].append(call)

    def believed(self, candidate: str) -> str:
        """Return whose clock is believed: the reference's, else the last contestant's."""
        names = list(dict.fromkeys(name for name, _ in self.calls))
        return REFERENCE if REFERENCE in names else next((n for n in reversed(names) if n != candidate), candidate)

    def charge(self, candidate: str) -> None:
        """Charge every call with what was hidden from its worker's clock, if it is more than can be chance.

        What is usual is told by a contestant whose own clock is believed. All contestants are charged alike, and of two
        calls the quicker counts: honest ones lose no more than others.
        """
        for case in self.case_names():
            believed = self.calls_of(self.believed(candidate), case)
            usual = [_Usual.of(row) for row in zip(*map(_beside_ns, believed), strict=True)]
            joined = _Usual.of([_after_events_ns(c) for c in believed])
            for (_, of_case), processes in self.calls.items():
                for block in (b for p in processes for b in p) if of_case == case else ():
                    block[:] = [
                        replace(c, hidden_ns=max(_hidden_ns(c, usual), _beyond_events_ns(c, joined))) for c in block
                    ]

    @property
    def looks(self) -> int:
        """How many sets of workers were timed."""
        return max((len(processes) for processes in self.calls.values()), default=0)

    def of(self, name: str, case: str) -> list[float]:
        """Return a contestant's microseconds on one case."""
        return [c.ns / 1000 for c in self.calls_of(name, case)]

    def calls_of(self, name: str, case: str) -> list[Call]:
        """Return a contestant's calls on one case."""
        return [c for process in self.calls[name, case] for block in process for c in block]

    def blocks_of(self, name: str, case: str | None = None) -> list[list[float]]:
        """Return by process and block the geometric mean over cases of the quickest call.

        The quickest: an interruption can only add time.
        """
        tables = [table for (who, c), table in self.calls.items() if who == name and case in (None, c)]
        return [
            [geomean([min(c.ns for c in table[p][b]) / 1000 for table in tables]) for b in range(len(blocks))]
            for p, blocks in enumerate(tables[0])
        ]

    def restless(self, name: str) -> bool:
        """Whether something usually worked in a contestant's worker beside its calls."""
        calls = [c for (who, _), table in self.calls.items() if who == name for p in table for b in p for c in b]
        return sum(c.late_ns > 0 for c in calls) > len(calls) / 4

    @staticmethod
    def joined(parts: Sequence["Samples"]) -> "Samples":
        """Return the processes of several runs, one after the other."""
        out = Samples()
        for part in parts:
            for key, processes in part.calls.items():
                out.calls.setdefault(key, []).extend(processes)
        return out

    def case_names(self) -> list[str]:
        """Return the cases' names in order."""
        return list(dict.fromkeys(case for _, case in self.calls))


class _Usual(NamedTuple):
    """What usually passes beside a call, and how much may be chance."""

    middle: float
    most: float

    @staticmethod
    def of(values: Sequence[float]) -> "_Usual":
        """From quartiles: one and a half times their distance above the upper one is chance (Tukey's fence)."""
        low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
        return _Usual(middle, high + 1.5 * (high - low))


def _beside_ns(call: Call) -> tuple[int, int, int, int, int]:
    """Return what the verifier's clock saw before, around and after a call, and what was worked before it."""
    return call.before_ns, call.wall_ns - call.measured_ns, call.after_ns, call.idle_ns, call.ready_ns


def _hidden_ns(call: Call, usual: Sequence[_Usual]) -> int:
    free = (FREE_NS, FREE_NS + FREE_CALL * call.measured_ns, FREE_NS, FREE_NS, FREE_NS)
    seen = zip(_beside_ns(call), usual, free, strict=True)
    return int(sum(passed - u.middle for passed, u, most in seen if passed > u.most + most))


def _after_events_ns(call: Call) -> int:
    """Return what the worker's own clock saw of a GPU beyond its events: the end of what ran on no stream of theirs."""
    return sum(reading.ns - reading.event_ns for reading in call.readings if reading.event_ns)


def _beyond_events_ns(call: Call, usual: _Usual) -> int:
    passed = _after_events_ns(call)
    return int(passed - usual.middle) if passed > usual.most + FREE_EVENTS_NS else 0


def run(verifier: "Verifier", plan: Plan, contestants: Sequence["Contestant"]) -> Samples:
    """Time all contestants by the plan.

    Raises KernelFailure when the candidate fails, InfrastructureError when another contestant does: that is no fault
    of the candidate.
    """
    samples, rng = Samples(), random.Random()
    for look in range(plan.looks):
        with verifier.workshop.sessions(len(contestants), timing=True) as workers:
            assert len({c.name for c in contestants}) == len(contestants), "two contestants have one name"
            sessions = {contestant.name: worker for contestant, worker in zip(contestants, workers, strict=True)}
            for contestant in contestants:
                with blame(contestant.name, plan.candidate):
                    verifier.load(sessions[contestant.name], contestant, plan.cases)
            before = _warm_up(verifier, plan, sessions)
            for block in range(plan.blocks):
                for order in (rng.sample(list(sessions), len(sessions)) for _ in range(plan.turns)):
                    for half in (order, order[::-1]):
                        _half(verifier, plan, samples, {name: sessions[name] for name in half}, rng, (look, block))
                with blame(plan.candidate, plan.candidate):
                    _require_untouched(sessions, plan.candidate, before)
                if look == 0 and _hopeless(plan, samples, block + 1):
                    samples.charge(plan.candidate)
                    return samples
        samples.charge(plan.candidate)
        if decided(plan, samples, look + 1):
            return samples
    return samples


def _half(
    verifier: "Verifier",
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
    deliveries = {slot: verifier.inputs.draw(case) for slot, case in enumerate(plan.cases)}
    for name, session in sessions.items():
        with blame(name, plan.candidate):
            verifier.deliver(session, deliveries)
    verifier.sweep()
    slot = rng.choice(list(deliveries))
    rehearsal = verifier.inputs.another(deliveries[slot])
    for name, session in sessions.items():
        with blame(name, plan.candidate):
            verifier.rehearse(session, rehearsal, slot)
    for slot in rng.sample(list(deliveries), len(deliveries)):
        calls: dict[str, Call] = {}
        for name, session in sessions.items():
            with blame(name, plan.candidate), _alone(session, sessions.values()):
                calls[name] = verifier.timed(session, deliveries[slot], slot)
            samples.add(name, plan.cases[slot].name, *place, calls[name])
        _require_swept(plan, samples.believed(plan.candidate), calls)
    for slot, delivery in deliveries.items():
        for name, session in sessions.items():
            with blame(name, plan.candidate):
                verifier.perhaps_compare(session, delivery, slot)


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


def _warm_up(verifier: "Verifier", plan: Plan, sessions: dict[str, Session]) -> dict[str, dict[int, object]]:
    """Return how the system ran each contestant's threads when its first call had ended."""
    before: dict[str, dict[int, object]] = {}
    deliveries = {slot: verifier.inputs.draw(case) for slot, case in enumerate(plan.cases)}
    start, rounds = time.monotonic(), 0
    while rounds < verifier.harness.warmup_calls or time.monotonic() - start < verifier.warmup_s:
        rounds += 1
        for name, session in sessions.items():
            with blame(name, plan.candidate):
                verifier.deliver(session, deliveries)
                for slot, delivery in deliveries.items():
                    verifier.timed(session, delivery, slot)
                    if name not in before:
                        before[name] = _scheduling(session)
                    verifier.perhaps_compare(session, delivery, slot)
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


def _hopeless(plan: Plan, samples: Samples, done: int) -> bool:
    """Whether the candidate is so much slower than its rival that the rest of the first look is spared."""
    if plan.rival is None or done != plan.drop_after:
        return False
    ours, theirs = samples.blocks_of(plan.candidate)[0], samples.blocks_of(plan.rival)[0]
    return max(b / a for a, b in zip(ours, theirs, strict=True)) < plan.drop_below


def decided(plan: Plan, samples: Samples, look: int) -> bool:
    """Whether no further look is needed: the candidate is slower by the test, or has no chance to be found faster, or
    is faster by the test in two sets of workers. Within one set nobody knows how much another would differ."""
    if plan.rival is None:
        return False
    ours, theirs = samples.blocks_of(plan.candidate), samples.blocks_of(plan.rival)
    _, (low, high) = ratio(ours, theirs, plan.confidence)
    if high < 1 or (low > 1 + plan.margin(look) and look >= LEAST_LOOKS):
        return True
    last = plan.looks
    return look < last and not attainable(ours, theirs, plan.confidence, plan.margin(last), (look, last))


class blame:
    """Turn the failure of a contestant that is not the candidate into an infrastructure error."""

    def __init__(self, name: str, candidate: str) -> None:
        self.name, self.candidate = name, candidate

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, KernelFailure) and self.name != self.candidate:
            raise InfrastructureError(f"contestant {self.name} failed while it was timed: {error.reason}") from error
