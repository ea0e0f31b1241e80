"""When a timing ends: what the stages so far show of a candidate and its baseline."""

import pytest
import torch

from kernel_scientist.evaluate.correctness.inputs import InputSet
from kernel_scientist.evaluate.timing.estimate import Samples
from kernel_scientist.evaluate.timing.plan import Plan
from kernel_scientist.evaluate.timing.schedule import decided, hopeless
from kernel_scientist.records.kernel import Case
from kernel_scientist.workers.client import Row
from kernel_scientist.workers.native import Reading

CASE = Case(sizes={"n": 1}, seed=1)
STEADY = (1.0, 1.004, 0.997, 1.002)


def timed(gain: float, stages: int) -> Samples:
    """Return samples of a candidate that is faster than its baseline by `gain`, four steady blocks per stage."""
    samples = Samples()
    for name, us in (("candidate", 1000 / gain), ("baseline", 1000)):
        for stage in range(stages):
            for block, chance in enumerate(STEADY if name == "baseline" else STEADY[::-1]):
                ns = int(1000 * us * chance)
                samples.add(name, CASE.name, stage, block, Row(1, ns, Reading(ns, ns, 0)))
    return samples


def plan(*margins: float, drop_below: float = 0.0) -> Plan:
    """Return a plan of three stages."""
    return Plan((CASE,), "candidate", "baseline", 4, 1, 3, 1 - 0.05 / 3, margins, 2, drop_below)


@pytest.mark.parametrize(
    ("gain", "stage", "ends"),
    [(1.03, 1, False), (1.03, 2, True), (0.97, 1, True), (1.0, 1, True), (1.5, 1, False), (1.5, 2, True)],
)
def test_a_gain_takes_two_stages_and_a_loss_one(gain: float, stage: int, ends: bool) -> None:
    assert decided(plan(0.005, 0.005, 0.005), timed(gain, stage), stage) is ends


def test_a_noisy_first_stage_does_not_end_a_gain_that_the_last_one_can_show() -> None:
    assert not decided(plan(0.29, 0.005, 0.005), timed(1.03, 1), 1)
    assert decided(plan(0.005, 0.29, 0.29), timed(1.03, 1), 1)


@pytest.mark.parametrize(("gain", "blocks", "dropped"), [(0.5, 2, True), (0.5, 1, False), (0.8, 2, False)])
def test_a_much_slower_candidate_is_dropped_early(gain: float, blocks: int, dropped: bool) -> None:
    assert hopeless(plan(0.005, drop_below=0.7), timed(gain, 1), blocks) is dropped


def test_without_a_baseline_nothing_is_decided() -> None:
    alone = Plan((CASE,), "candidate", None, 4, 1, 3, 0.98)
    assert not decided(alone, timed(2.0, 2), 2) and not hopeless(alone, timed(0.1, 1), 2)


def test_inputs_within_a_dict_count_towards_the_bytes_of_a_row() -> None:
    data = (torch.zeros(4), {"weights": [torch.zeros(8)]}, 3)
    assert InputSet(Case(sizes={}, seed=0), data, fresh=True, poison=0).bytes == 4 * (4 + 8)
