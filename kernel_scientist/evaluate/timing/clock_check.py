"""Clocks that must agree. The worker's are read inside the kernel's process; the verifier's own cannot be forged there.

Per case: the worker's system clock against the processor's counter; the time from request to answer by the verifier's
clock, compared with what a trusted contestant's call of the same case costs beyond itself; CPU time against the cores
granted; and the slope of the verifier's clock between N and 2N calls against what the worker says of them.
"""

import functools
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from kernel_scientist.evaluate.correctness import output_integrity
from kernel_scientist.evaluate.correctness.inputs import Delivery
from kernel_scientist.evaluate.timing.samples import Samples
from kernel_scientist.records.evaluation import Clocks
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.sandbox.failure import Disagreement
from kernel_scientist.workers.call import Call
from kernel_scientist.workers.client import Session

if TYPE_CHECKING:
    from kernel_scientist.evaluate.evaluator import Evaluator, TimedSource

SLACK = 0.10
"""Share of a call by which clocks may differ."""
HIDDEN_US, HIDDEN_SHARE = 100.0, 0.5
"""How far what passes outside a call, at its best, may differ between two workers: absolute, and as a share. Less is
charged, so it does not pay; a busy machine must not accuse anybody."""
COUNTER_US = 5.0
"""How far the two readings may lie apart: the second clock's own code is cold when the first has been read."""
SLOPE_US = 25.0
"""How far the cost of one more call may be above the call; the loop around it."""
ROW_US = 600.0
"""How far two rows of calls may differ besides, all calls together: seen here on an idle machine."""
SINGLE_SHARE = 0.6
"""A single call is not quicker than this share of the best of many; seen here of honest kernels: 0.75."""
SLOPE_REPEATS = 6
SLOPE_CALLS = 8
SLOPE_CASES = 3
"""Cases whose calls are also made in rows."""
SLOPE_BYTES = 32 << 20
SLOPE_ENOUGH_US = 2000.0


@dataclass(frozen=True)
class Ticker:
    """Measures how fast the processor's counter runs, over the whole of a timing."""

    start_ns: int
    start_ticks: int

    @staticmethod
    def start(evaluator: "Evaluator") -> "Ticker":
        """Begin."""
        ticks = evaluator.native.ticks
        return Ticker(time.perf_counter_ns(), ticks())

    def per_ns(self, evaluator: "Evaluator") -> float:
        """Return ticks per nanosecond so far; 0 where there is no counter."""
        return (evaluator.native.ticks() - self.start_ticks) / (time.perf_counter_ns() - self.start_ns)


def compare(
    samples: Samples, cases: Sequence[Case], candidate: str, trusted: str, threads: int, ticks_per_ns: float
) -> tuple[Clocks, ...]:
    """Return the readings per case. Raises KernelFailure (rejected) where they do not agree."""
    found: list[Clocks] = []
    for case in (c.name for c in cases):
        calls, others = samples.calls_of(candidate, case), samples.calls_of(trusted, case)
        clocks = _clocks(case, calls, others, ticks_per_ns)
        _require(clocks, threads)
        found.append(clocks)
    return tuple(found)


def _clocks(case: str, calls: Sequence[Call], others: Sequence[Call], ticks_per_ns: float) -> Clocks:
    call_us = statistics.median(c.measured_ns for c in calls) / 1000
    host_us = statistics.median(c.claimed_ns for c in calls) / 1000
    counter = [c.readings[0].ticks / ticks_per_ns / 1000 for c in calls] if ticks_per_ns > 0 else []
    known = [c for c in calls if c.cpu_ns is not None]
    return Clocks(
        case=case,
        call_us=call_us,
        host_us=host_us,
        counter_us=statistics.median(counter) if counter else None,
        outside_us=min(_outside(calls)),
        usual_outside_us=statistics.median(_outside(others)),
        before_us=statistics.median(c.before_ns for c in calls) / 1000,
        after_us=min(_after(calls)),
        usual_after_us=statistics.median(_after(others)),
        cpu_us=statistics.median(c.cpu_ns or 0 for c in known) / 1000 if known else None,
        span_us=statistics.median(c.span_ns for c in calls) / 1000,
        wall_us=statistics.median(c.wall_ns for c in calls) / 1000,
        switches=sum(r.switches for c in calls for r in c.readings),
    )


def _outside(calls: Sequence[Call]) -> list[float]:
    """Return what passed on the verifier's clock beyond the worker's own reading, in us."""
    return [(c.wall_ns - c.measured_ns) / 1000 for c in calls]


def _after(calls: Sequence[Call]) -> list[float]:
    """Return what passed on the verifier's clock from the end of a call to the answer, in us."""
    return [c.after_ns / 1000 for c in calls]


def _require(clocks: Clocks, threads: int) -> None:
    case, call = clocks.case, clocks.call_us
    host, counter = clocks.host_us, clocks.counter_us
    if counter is not None and abs(counter - host) > COUNTER_US + 0.02 * max(host, counter):
        _reject(f"{case}: {host:.1f} us by its system clock, {counter:.1f} us by the processor's counter")
    hidden = clocks.outside_us - clocks.usual_outside_us
    if hidden > HIDDEN_US + SLACK * call + HIDDEN_SHARE * clocks.usual_outside_us:
        _reject(
            f"{case}: it claims {call:.0f} us a call; {clocks.outside_us:.0f} us more passed outside, "
            f"{clocks.usual_outside_us:.0f} us is usual"
        )
    late = clocks.after_us - clocks.usual_after_us
    if late > HIDDEN_US + HIDDEN_SHARE * clocks.usual_after_us:
        _reject(
            f"{case}: from the end of a call to the digest of its output it takes {clocks.after_us:.0f} us, "
            f"{clocks.usual_after_us:.0f} us is usual"
        )
    if clocks.cpu_us is not None and clocks.cpu_us > (threads + 0.25) * clocks.span_us:
        _reject(f"{case}: {clocks.cpu_us:.0f} us of CPU in {clocks.span_us:.0f} us: more than {threads} cores")


def _reject(words: str) -> NoReturn:
    raise Disagreement(Verdict.REJECTED, "its clock and the verifier's disagree", (words,))


def slopes(
    evaluator: "Evaluator", contestant: "TimedSource", clocks: Sequence[Clocks], cases: Sequence[Case]
) -> tuple[Clocks, ...]:
    """Time N and then 2N calls in a row by the verifier's clock, each on inputs of its own, and add the slope to the
    readings of some cases: the lot says which, when their single calls have been made.

    Raises KernelFailure (rejected) when one more call costs more than the worker says, or when the worker says much
    less of single calls than of calls in a row.
    """
    with evaluator.pool.session(timing=True) as session:
        evaluator.load(session, contestant, cases)
        found = list(clocks)
        for place in evaluator.inputs.lot(len(cases), SLOPE_CASES):
            clock, case = clocks[place], cases[place]
            delivery = evaluator.inputs.draw(case)
            evaluator.deliver(session, {0: delivery})
            evaluator.timed(session, delivery)
            calls = min(
                SLOPE_CALLS, math.ceil(SLOPE_ENOUGH_US / clock.call_us), SLOPE_BYTES // (2 * delivery.bytes + 1)
            )
            found[place] = _with_slope(evaluator, session, clock, delivery, max(1, calls))
        return tuple(found)


def _with_slope(evaluator: "Evaluator", session: Session, clock: Clocks, delivery: Delivery, count: int) -> Clocks:
    """Measure the slope, again if it looks bad: an interruption can only add to it. Raises KernelFailure (rejected)."""
    runs: dict[int, list[Call]] = {count: [], 2 * count: []}
    found, fault = clock, 0.0
    for _ in range(SLOPE_REPEATS):
        _in_a_row(evaluator, session, delivery, runs)
        found = clock.model_copy(update=_slope(runs, count))
        if (fault := _fault(found, count)) <= 0:
            return found
    _reject(
        f"{clock.case}: it claims {clock.call_us:.1f} us for a single call, {found.row_us:.1f} us for the best of many "
        f"and {found.slope_claimed_us:.1f} us for one more; one more takes {found.slope_us:.1f} us outside: "
        f"{fault:.1f} us too many"
    )


def _fault(clocks: Clocks, count: int) -> float:
    """Return by how many us a slope, or what is claimed in a row, is beyond what an honest worker's can be."""
    slope, claimed, row = clocks.slope_us or 0.0, clocks.slope_claimed_us or 0.0, clocks.row_us or 0.0
    hidden = slope - claimed - SLOPE_US - ROW_US / count - SLACK * max(claimed, 0.0)
    return max(hidden, SINGLE_SHARE * row - SLOPE_US - clocks.host_us)  # the host's clock on both sides


def _in_a_row(evaluator: "Evaluator", session: Session, delivery: Delivery, runs: dict[int, list[Call]]) -> None:
    """Make each number of calls once more; before the first time once for its first-time costs (new memory)."""
    first = not any(runs.values())
    delivered: list[Delivery] = []
    for n in ([max(runs)] if first else []) + list(runs):
        delivered = []
        for _ in range(n):
            delivered.append(evaluator.inputs.neighbour(delivered[-1] if delivered else delivery))
        evaluator.deliver(session, dict(enumerate(delivered)))
        arm = functools.partial(evaluator.arm, session, *enumerate(delivered))
        look = output_integrity.look(evaluator, session, delivery, range(n))
        # no sweep on a CPU: only the inputs are cold, as in most single calls
        runs[n].append(session.go(range(n), arm, look=look))
    for slot, one in enumerate(delivered):
        if evaluator.inputs.verified(evaluator.harness.verify_fraction):
            output_integrity.require_of_row(evaluator, session, one, slot, session.glimpses[0], len(delivered))
    if first:
        del runs[max(runs)][0]


def _slope(runs: dict[int, list[Call]], count: int) -> dict[str, float]:
    """Return what one more call costs by the verifier's clock and by the worker's word, and what a good one costs.

    From the quickest run of either length: an interruption can only add.
    """
    once, twice = (min(runs[n], key=lambda call: call.wall_ns) for n in (count, 2 * count))
    best = min(reading.ns for call in runs[2 * count] for reading in call.readings)
    return {
        "slope_us": (twice.wall_ns - once.wall_ns) / count / 1000,
        "slope_claimed_us": (twice.claimed_ns - once.claimed_ns) / count / 1000,
        "row_us": best / 1000,
    }
