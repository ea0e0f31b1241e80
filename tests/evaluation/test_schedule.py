"""When a timing ends: what the stages so far show of a candidate and its baseline."""

from dataclasses import replace

import pytest
import torch

from kernel_scientist.evaluation.inputs import InputSet
from kernel_scientist.evaluation.timing.estimate import Samples
from kernel_scientist.evaluation.timing.plan import TimingPlan
from kernel_scientist.evaluation.timing.schedule import hopeless, needs_no_further_stage
from kernel_scientist.records.kernel import Case
from kernel_scientist.workers.client import Row
from kernel_scientist.workers.native import Reading

CASE = Case(sizes={"n": 1}, seed=1)
STEADY = (1.0, 1.004, 0.997, 1.002)


def timed(gain: float, stages: int) -> Samples:
    """Return samples of a candidate that is faster than its baseline by `gain`, four steady blocks per stage."""
    samples = Samples()
    for stage in range(stages):
        for block, chances in enumerate(zip(STEADY[::-1], STEADY, strict=True)):
            add(samples, stage, block, (1000 / gain * chances[0], 1000 * chances[1]))
    return samples


def add(samples: Samples, stage: int, block: int, times_us: tuple[float, float]) -> None:
    """Add a block of both sources: a row, and in the reverse order another one that takes as long."""
    for name, us in zip(("candidate", "baseline"), times_us, strict=True):
        for _ in range(2):
            ns = int(1000 * us)
            samples.add(name, CASE.name, stage, block, Row(1, ns, Reading(ns, ns, 0)))


def plan(*margins: float, drop_below: float = 0.0) -> TimingPlan:
    """Return a plan of three stages."""
    return TimingPlan((CASE,), "candidate", "baseline", 4, 1, 3, 1 - 0.05 / 3, margins, 2, drop_below)


@pytest.mark.parametrize(
    ("gain", "stage", "ends"),
    [(1.03, 1, False), (1.03, 2, True), (0.97, 1, True), (1.0, 1, True), (1.5, 1, False), (1.5, 2, True)],
)
def test_a_gain_takes_two_stages_and_a_loss_one(gain: float, stage: int, ends: bool) -> None:
    assert needs_no_further_stage(plan(0.005, 0.005, 0.005), timed(gain, stage), stage) is ends


@pytest.mark.parametrize(
    ("gain", "stage", "ends"), [(1.0, 1, False), (1.0, 2, False), (0.97, 1, True), (1.03, 2, True)]
)
def test_while_the_device_would_be_idle_only_a_result_ends_a_timing(gain: float, stage: int, ends: bool) -> None:
    idle = replace(plan(0.005, 0.005, 0.005), is_idle=lambda: True)
    assert needs_no_further_stage(idle, timed(gain, stage), stage) is ends


def test_a_noisy_first_stage_does_not_end_a_gain_that_the_last_one_can_show() -> None:
    assert not needs_no_further_stage(plan(0.29, 0.005, 0.005), timed(1.03, 1), 1)
    assert needs_no_further_stage(plan(0.005, 0.29, 0.29), timed(1.03, 1), 1)


@pytest.mark.parametrize(("gain", "blocks", "dropped"), [(0.5, 2, True), (0.5, 1, False), (0.8, 2, False)])
def test_a_much_slower_candidate_is_dropped_early(gain: float, blocks: int, dropped: bool) -> None:
    samples = Samples()
    for block, chances in enumerate(zip(STEADY[::-1][:blocks], STEADY[:blocks], strict=True)):
        add(samples, 0, block, (1000 / gain * chances[0], 1000 * chances[1]))
    assert hopeless(plan(0.005, drop_below=0.7), samples, blocks) is dropped


def test_a_disturbed_row_drops_no_candidate_whose_interval_reaches_the_baseline() -> None:
    samples = Samples()
    for block, ours_us in enumerate((1000, 3000)):
        add(samples, 0, block, (ours_us, 1000))
    assert not hopeless(plan(0.005, drop_below=0.7), samples, 2), "its middle is 0.58 of the baseline's speed"
    for block in (2, 3):
        add(samples, 0, block, (3000, 1000))
    assert hopeless(plan(0.005, drop_below=0.7), samples, 4), "and the interval narrows with the blocks"


def test_without_a_baseline_nothing_is_decided() -> None:
    alone = TimingPlan((CASE,), "candidate", None, 4, 1, 3, 0.98)
    assert not needs_no_further_stage(alone, timed(2.0, 2), 2) and not hopeless(alone, timed(0.1, 1), 2)


def test_inputs_within_a_dict_count_towards_the_bytes_of_a_row() -> None:
    data = (torch.zeros(4), {"weights": [torch.zeros(8)]}, 3)
    assert InputSet(Case(sizes={}, seed=0), data, fresh=True, poison=0).bytes == 4 * (4 + 8)
