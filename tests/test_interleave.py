"""When a timing ends: what the looks so far say of a candidate and its rival."""

import pytest

from kernel_scientist.harness.call import Call
from kernel_scientist.harness.interleave import Plan, decided
from kernel_scientist.harness.samples import Samples
from kernel_scientist.harness.shim import Reading
from kernel_scientist.records import Case

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
