"""When a timing ends: what the looks so far say of a candidate and its rival."""

from dataclasses import replace

import pytest

from kernel_scientist.evaluate.timing.samples import Samples
from kernel_scientist.evaluate.timing.schedule import Plan, decided, hopeless
from kernel_scientist.evaluate.timing.statistics import ratio
from kernel_scientist.records.kernel import Case
from kernel_scientist.workers.call import Call
from kernel_scientist.workers.native import Reading

CASE = Case(sizes={"n": 1}, seed=1)
STEADY = (1.0, 1.004, 0.997, 1.002)


def looked(gain: float, looks: int) -> Samples:
    """Return samples of a candidate that is so much faster than its rival, four steady blocks per look."""
    samples = Samples()
    for name, us in (("candidate", 1000 / gain), ("rival", 1000)):
        for look in range(looks):
            for block, chance in enumerate(STEADY if name == "rival" else STEADY[::-1]):
                ns = int(1000 * us * chance)
                samples.add(name, CASE.name, look, block, Call((Reading(ns, ns, ns, 0),), ns, 0, 0, ns, ns))
    return samples


BESIDE = 100_000
"""What passes beside each call, ns."""


def seen(gain: float, seen_gain: float) -> Samples:
    """Return two looks on a CPU at a candidate so much faster by its own clock, and so much by the verifier's."""
    samples = Samples()
    for name, us, wall in (("candidate", 1000 / gain, 1000 / seen_gain), ("rival", 1000.0, 1000.0)):
        for look in range(2):
            for block, chance in enumerate(STEADY if name == "rival" else STEADY[::-1]):
                ns, all_ns = int(1000 * us * chance), int(1000 * wall * chance)
                samples.add(name, CASE.name, look, block, Call((Reading(ns, ns, ns, 0),), all_ns, BESIDE, 0, ns, ns))
    samples.charge("candidate")
    return samples


def plan(*margins: float) -> Plan:
    """Return a plan of three looks."""
    return Plan((CASE,), "candidate", "rival", 4, 1, 3, 1 - 0.05 / 3, margins)


@pytest.mark.parametrize(
    ("gain", "look", "ends"),
    [(1.03, 1, False), (1.03, 2, True), (0.97, 1, True), (1.0, 1, True), (1.5, 1, False), (1.5, 2, True)],
)
def test_a_gain_is_looked_at_twice_and_a_loss_once(gain: float, look: int, ends: bool) -> None:
    assert decided(plan(0.005, 0.005, 0.005), looked(gain, look), look) is ends


def test_a_first_look_that_was_noisy_here_does_not_end_a_gain_that_the_last_one_can_show() -> None:
    assert not decided(plan(0.29, 0.005, 0.005), looked(1.03, 1), 1)
    assert decided(plan(0.005, 0.29, 0.29), looked(1.03, 1), 1)


def test_a_gain_that_the_verifier_has_not_seen_decides_nothing() -> None:
    """Twenty us of a call of a millisecond, which pass as chance."""
    assert decided(plan(0.005), seen(1.02, 1.02), 2)
    claimed = seen(1.02, 1.006)
    _, (low, _) = ratio(*(claimed.blocks_of(who) for who in ("candidate", "rival")), confidence=0.98)
    assert low > 1.005 and not decided(plan(0.005), claimed, 2)
    assert decided(plan(0.005), seen(1.02, 0.98), 1), "no look more where that has no chance to be seen"


def test_who_is_dropped_early_is_slower_by_what_counts() -> None:
    """A call of 9 us instead of 2 us is little beside one of 0.8 ms instead of 1 ms, and beside what passes anyway."""
    samples, cases = Samples(), (Case(sizes={"n": 1}, seed=1), Case(sizes={"n": 2}, seed=1))
    for name, times in (("candidate", (9_000, 800_000)), ("rival", (2_000, 1_000_000))):
        for case, ns in zip(cases, times, strict=True):
            for block in range(2):
                samples.add(name, case.name, 0, block, Call((Reading(ns, ns, ns, 0),), ns, BESIDE, 0, ns, ns))
    declared = Plan(cases, "candidate", "rival", 4, 1, 3, 0.98, (0.005,), drop_after=2, drop_below=0.7)
    assert not hopeless(declared, samples, 2)
    declared = replace(declared, candidate="rival", rival="candidate", drop_below=0.95)
    assert hopeless(declared, samples, 2)
